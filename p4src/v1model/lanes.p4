// Arithmetic on all lanes of a field at once.
#ifndef SERENE_LANES_P4
#define SERENE_LANES_P4

// The lane-wise sum needs no loop. Adding the low 31 bits of each lane never carries into the next lane. The top bits
// are added by exclusive or.
const bit<256> TOP_BITS_8 = 32w0x80000000 ++ 32w0x80000000 ++ 32w0x80000000 ++ 32w0x80000000 ++
                            32w0x80000000 ++ 32w0x80000000 ++ 32w0x80000000 ++ 32w0x80000000;
const lanes_t TOP_BITS = TOP_BITS_8 ++ TOP_BITS_8 ++ TOP_BITS_8 ++ TOP_BITS_8 ++
                         TOP_BITS_8 ++ TOP_BITS_8 ++ TOP_BITS_8 ++ TOP_BITS_8;
const lanes_t LOW_BITS = ~TOP_BITS;
#define ADD_LANES(a, b) ((((a) & LOW_BITS) + ((b) & LOW_BITS)) ^ (((a) ^ (b)) & TOP_BITS))

// The lane-wise difference. A top bit that is set lends to its own lane only.
#define SUBTRACT_LANES(a, b) ((((a) | TOP_BITS) - ((b) & LOW_BITS)) ^ (((a) ^ ~(b)) & TOP_BITS))

#endif
