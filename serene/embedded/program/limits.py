"""The limits on a program's size. The error for a larger program names the limit. The limits bound the generated C's
memory, its time for a packet, and the compiler's work."""

MAX_JSON_BYTES = 32 << 20
MAX_SOURCE_BYTES = 16 << 20  # of the generated C
MAX_NAME = 512  # characters
MAX_FIELD_BITS = 1 << 14
MAX_HEADER_BYTES = 1 << 16  # of one header, its varbit field included
MAX_PACKET_BYTES = 1 << 18  # of all headers and metadata of one packet
MAX_EXPRESSION_BITS = 1 << 16  # of an intermediate value
MAX_STACK_LIMBS = 1 << 17  # 64-bit words of intermediate values in all of the generated C
MAX_STACK_ELEMENTS = 255  # of a header stack: they are counted in a byte
MAX_OBJECTS = 4096  # tables, headers, parser states, ...
MAX_STEPS = 1 << 16  # primitives of one action; entries of one table in the program
MAX_CELLS = 1 << 20  # of a counter or meter; entries of a table, members of an action profile
MAX_REGISTER_CELLS = 1 << 28
MAX_STATE_BYTES = 64 << 30  # of all tables, counters, meters and registers; free memory is another limit
MOST_VALUES = 1024  # members of a value set
