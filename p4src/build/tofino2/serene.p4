error {
    NoError,
    PacketTooShort,
    NoMatch,
    StackOutOfBounds,
    HeaderTooShort,
    ParserTimeout,
    ParserInvalidArgument,
    CounterRange,
    Timeout,
    PhvOwner,
    MultiWrite,
    IbufOverflow,
    IbufUnderflow
}

extern packet_in {
    void extract<T>(out T hdr);
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    T lookahead<T>();
    void advance(in bit<32> sizeInBits);
    bit<32> length();
}

extern packet_out {
    void emit<T>(in T hdr);
}

extern void verify(in bool check, in error toSignal);
match_kind {
    exact,
    ternary,
    lpm,
    range,
    selector,
    dleft_hash,
    atcam_partition_index
}

extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);
@noWarn("unused") typedef bit<9> PortId_t;
@noWarn("unused") typedef bit<16> MulticastGroupId_t;
@noWarn("unused") typedef bit<7> QueueId_t;
@noWarn("unused") typedef bit<4> MirrorType_t;
@noWarn("unused") typedef bit<8> MirrorId_t;
@noWarn("unused") typedef bit<3> ResubmitType_t;
@noWarn("unused") typedef bit<3> DigestType_t;
@noWarn("unused") typedef bit<16> L1ExclusionId_t;
@noWarn("unused") typedef bit<9> L2ExclusionId_t;
enum MeterType_t {
    PACKETS,
    BYTES
}

enum bit<8> MeterColor_t {
    GREEN = 8w0,
    YELLOW = 8w1,
    RED = 8w3
}

enum CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

enum SelectorMode_t {
    FAIR,
    RESILIENT
}

enum HashAlgorithm_t {
    IDENTITY,
    RANDOM,
    XOR8,
    XOR16,
    XOR32,
    CRC8,
    CRC16,
    CRC32,
    CRC64,
    CUSTOM
}

@__intrinsic_metadata header ingress_intrinsic_metadata_t {
    bit<1>   resubmit_flag;
    @padding
    bit<1>   _pad1;
    bit<2>   packet_version;
    @padding
    bit<3>   _pad2;
    PortId_t ingress_port;
    bit<48>  ingress_mac_tstamp;
}

@__intrinsic_metadata struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t           ucast_egress_port;
    bit<1>             bypass_egress;
    bit<1>             deflect_on_drop;
    bit<3>             ingress_cos;
    QueueId_t          qid;
    bit<3>             icos_for_copy_to_cpu;
    bit<1>             copy_to_cpu;
    bit<2>             packet_color;
    bit<1>             disable_ucast_cutthru;
    bit<1>             enable_mcast_cutthru;
    MulticastGroupId_t mcast_grp_a;
    MulticastGroupId_t mcast_grp_b;
    bit<13>            level1_mcast_hash;
    bit<13>            level2_mcast_hash;
    L1ExclusionId_t    level1_exclusion_id;
    L2ExclusionId_t    level2_exclusion_id;
    bit<16>            rid;
}

@__intrinsic_metadata struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}

@__intrinsic_metadata struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3>         drop_ctl;
    DigestType_t   digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t   mirror_type;
    bit<1>         mirror_io_select;
    bit<13>        mirror_hash;
    bit<3>         mirror_ingress_cos;
    bit<1>         mirror_deflect_on_drop;
    bit<1>         mirror_multicast_ctrl;
    PortId_t       mirror_egress_port;
    QueueId_t      mirror_qid;
    bit<8>         mirror_coalesce_length;
    bit<32>        adv_flow_ctl;
    bit<14>        mtu_trunc_len;
    bit<1>         mtu_trunc_err_f;
    bit<1>         pktgen;
    bit<14>        pktgen_address;
    bit<10>        pktgen_length;
}

@__intrinsic_metadata @__ghost_metadata header ghost_intrinsic_metadata_t {
    bit<1>  ping_pong;
    bit<18> qlength;
    bit<11> qid;
    bit<2>  pipe_id;
}

@__intrinsic_metadata header egress_intrinsic_metadata_t {
    @padding
    bit<7>    _pad0;
    PortId_t  egress_port;
    @padding
    bit<5>    _pad1;
    bit<19>   enq_qdepth;
    @padding
    bit<6>    _pad2;
    bit<2>    enq_congest_stat;
    bit<32>   enq_tstamp;
    @padding
    bit<5>    _pad3;
    bit<19>   deq_qdepth;
    @padding
    bit<6>    _pad4;
    bit<2>    deq_congest_stat;
    bit<8>    app_pool_congest_stat;
    bit<32>   deq_timedelta;
    bit<16>   egress_rid;
    @padding
    bit<7>    _pad5;
    bit<1>    egress_rid_first;
    @padding
    bit<1>    _pad6;
    QueueId_t egress_qid;
    @padding
    bit<5>    _pad7;
    bit<3>    egress_cos;
    @padding
    bit<7>    _pad8;
    bit<1>    deflection_flag;
    bit<16>   pkt_length;
    @padding
    bit<8>    _pad9;
}

@__intrinsic_metadata struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}

@__intrinsic_metadata struct egress_intrinsic_metadata_for_deparser_t {
    bit<3>       drop_ctl;
    MirrorType_t mirror_type;
    bit<1>       coalesce_flush;
    bit<7>       coalesce_length;
    bit<1>       mirror_io_select;
    bit<13>      mirror_hash;
    bit<3>       mirror_ingress_cos;
    bit<1>       mirror_deflect_on_drop;
    bit<1>       mirror_multicast_ctrl;
    PortId_t     mirror_egress_port;
    QueueId_t    mirror_qid;
    bit<8>       mirror_coalesce_length;
    bit<32>      adv_flow_ctl;
    bit<14>      mtu_trunc_len;
    bit<1>       mtu_trunc_err_f;
}

@__intrinsic_metadata struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
    bit<1> update_delay_on_tx;
}

header pktgen_timer_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<8>  _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    @padding
    bit<2>   _pad1;
    bit<2>   pipe_id;
    bit<4>   app_id;
    @padding
    bit<15>  _pad2;
    PortId_t port_num;
    bit<16>  packet_id;
}

header pktgen_recirc_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<8>  _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_deparser_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<8>  _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_pfc_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<40> _pad2;
}

header ptp_metadata_t {
    bit<8>  udp_cksum_byte_offset;
    bit<8>  cf_byte_offset;
    bit<48> updated_cf;
}

extern Checksum {
    Checksum();
    void add<T>(in T data);
    void subtract<T>(in T data);
    bool verify();
    bit<16> get();
    void subtract_all_and_deposit<T>(out T residual);
    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}

extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add);
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add, @optional bool update_with_top);
    void pop();
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

extern ParserPriority {
    ParserPriority();
    void set(in bit<3> prio);
}

extern CRCPolynomial<T> {
    CRCPolynomial(T coeff, bool reversed, bool msb, bool extended, T init, T xor);
}

extern Hash<W> {
    Hash(HashAlgorithm_t algo);
    Hash(HashAlgorithm_t algo, CRCPolynomial<_> poly);
    W get<D>(in D data);
}

extern Random<W> {
    Random();
    W get();
}

extern IdleTimeout {
    IdleTimeout();
}

extern T max<T>(in T t1, in T t2);
extern T min<T>(in T t1, in T t2);
extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);
extern void invalidate<T>(in T field);
extern bool is_validated<T>(in T field);
extern T port_metadata_unpack<T>(packet_in pkt);
extern bit<32> sizeInBits<H>(in H h);
extern bit<32> sizeInBytes<H>(in H h);
@noWarn("unused") extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type, @optional bool true_egress_accounting);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused") extern DirectCounter<W> {
    DirectCounter(CounterType_t type, @optional bool true_egress_accounting);
    void count(@optional in bit<32> adjust_byte_count);
}

extern Meter<I> {
    Meter(bit<32> size, MeterType_t type, @optional bool true_egress_accounting);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green, @optional bool true_egress_accounting);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type, @optional bool true_egress_accounting);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green, @optional bool true_egress_accounting);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

extern Lpf<T, I> {
    Lpf(bit<32> size);
    T execute(in T val, in I index);
}

extern DirectLpf<T> {
    DirectLpf();
    T execute(in T val);
}

extern Wred<T, I> {
    Wred(bit<32> size, bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val, in I index);
}

extern DirectWred<T> {
    DirectWred(bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val);
}

extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
    void clear(in T value, @optional in T busy);
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
    void clear(in T value, @optional in T busy);
}

extern RegisterParam<T> {
    RegisterParam(T initial_value);
    T read();
}

enum MathOp_t {
    MUL,
    SQR,
    SQRT,
    DIV,
    RSQR,
    RSQRT
}

extern MathUnit<T> {
    MathUnit(bool invert, int<2> shift, int<6> scale, tuple<bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>> data);
    MathUnit(MathOp_t op, int factor);
    MathUnit(MathOp_t op, int A, int B);
    T execute(in T x);
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute) abstract void apply(inout T value, @optional out U rv, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U address(@optional bit<1> subword);
    U predicate(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern DirectRegisterAction2<T, U1, U2> {
    DirectRegisterAction2(DirectRegister<T> reg);
    U1 execute(out U2 rv2);
    @synchronous(execute) abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern DirectRegisterAction3<T, U1, U2, U3> {
    DirectRegisterAction3(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3);
    @synchronous(execute) abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern DirectRegisterAction4<T, U1, U2, U3, U4> {
    DirectRegisterAction4(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute) abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

@noWarn("unused") extern RegisterAction<T, H, U> {
    RegisterAction(Register<_, _> reg);
    U execute(@optional in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U execute_log(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U enqueue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U dequeue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U push(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U pop(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    void sweep(@optional in U busy);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop, sweep) abstract void apply(inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(enqueue, push) @optional abstract void overflow(@optional inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(dequeue, pop) @optional abstract void underflow(@optional inout T value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U address(@optional bit<1> subword);
    U predicate(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern RegisterAction2<T, H, U1, U2> {
    RegisterAction2(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2);
    U1 execute_log(out U2 rv2);
    U1 enqueue(out U2 rv2);
    U1 dequeue(out U2 rv2);
    U1 push(out U2 rv2);
    U1 pop(out U2 rv2);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop) abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    @synchronous(enqueue, push) @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2);
    @synchronous(dequeue, pop) @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern RegisterAction3<T, H, U1, U2, U3> {
    RegisterAction3(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    U1 execute_log(out U2 rv2, out U3 rv3);
    U1 enqueue(out U2 rv2, out U3 rv3);
    U1 dequeue(out U2 rv2, out U3 rv3);
    U1 push(out U2 rv2, out U3 rv3);
    U1 pop(out U2 rv2, out U3 rv3);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop) abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(enqueue, push) @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(dequeue, pop) @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern RegisterAction4<T, H, U1, U2, U3, U4> {
    RegisterAction4(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    U1 execute_log(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 enqueue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 dequeue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 push(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 pop(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop) abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(enqueue, push) @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(dequeue, pop) @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern LearnAction<T, H, D, U> {
    LearnAction(Register<T, H> reg);
    U execute(in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute) abstract void apply(inout T value, in D digest, in bool learn, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U address(@optional bit<1> subword);
    U predicate(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern LearnAction2<T, H, D, U1, U2> {
    LearnAction2(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2);
    @synchronous(execute) abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern LearnAction3<T, H, D, U1, U2, U3> {
    LearnAction3(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute) abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2, out U3 rv3);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern LearnAction4<T, H, D, U1, U2, U3, U4> {
    LearnAction4(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute) abstract void apply(inout T value, in D digest, in bool learn, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
}

extern MinMaxAction<T, H, U> {
    MinMaxAction(Register<T, _> reg);
    U execute(@optional in H index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute) abstract void apply(inout bit<128> value, @optional out U rv1, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U address(@optional bit<1> subword);
    U predicate(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<8> postmod);
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<8> postmod);
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<8> postmod);
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<8> postmod);
}

extern MinMaxAction2<T, H, U1, U2> {
    MinMaxAction2(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2);
    @synchronous(execute) abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<9> postmod);
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<9> postmod);
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<9> postmod);
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<9> postmod);
}

extern MinMaxAction3<T, H, U1, U2, U3> {
    MinMaxAction3(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute) abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<9> postmod);
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<9> postmod);
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<9> postmod);
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<9> postmod);
}

extern MinMaxAction4<T, H, U1, U2, U3, U4> {
    MinMaxAction4(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute) abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    U address<U>(@optional bit<1> subword);
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1, @optional in bool cmp2, @optional in bool cmp3);
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<9> postmod);
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, @optional in int<9> postmod);
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<9> postmod);
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, @optional in int<9> postmod);
}

extern ActionProfile {
    ActionProfile(bit<32> size);
}

extern ActionSelector {
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, bit<32> max_group_size, bit<32> num_groups);
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg, bit<32> max_group_size, bit<32> num_groups);
    @deprecated("ActionSelector must be specified with an associated ActionProfile") ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);
    @deprecated("ActionSelector must be specified with an associated ActionProfile") ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

extern SelectorAction {
    SelectorAction(ActionSelector sel);
    bit<1> execute(@optional in bit<32> index);
    @synchronous(execute) abstract void apply(inout bit<1> value, @optional out bit<1> rv);
}

extern Mirror {
    @deprecated("Mirror must be specified with the value of the mirror_type instrinsic metadata") Mirror();
    Mirror(MirrorType_t mirror_type);
    void emit(in MirrorId_t session_id);
    void emit<T>(in MirrorId_t session_id, in T hdr);
}

extern Resubmit {
    @deprecated("Resubmit must be specified with the value of the resubmit_type instrinsic metadata") Resubmit();
    Resubmit(ResubmitType_t resubmit_type);
    void emit();
    void emit<T>(in T hdr);
}

extern Digest<T> {
    @deprecated("Digest must be specified with the value of the digest_type instrinsic metadata") Digest();
    Digest(DigestType_t digest_type);
    void pack(in T data);
}

extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}

extern Atcam {
    Atcam(@optional bit<32> number_partitions);
}

extern Alpm {
    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition, @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}

parser IngressParserT<H, M>(packet_in pkt, out H hdr, out M ig_md, out ingress_intrinsic_metadata_t ig_intr_md, @optional out ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm, @optional out ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr);
parser EgressParserT<H, M>(packet_in pkt, out H hdr, out M eg_md, out egress_intrinsic_metadata_t eg_intr_md, @optional out egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr, @optional out egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr);
control IngressT<H, M>(inout H hdr, inout M ig_md, in ingress_intrinsic_metadata_t ig_intr_md, in ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr, inout ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr, inout ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm, @optional in ghost_intrinsic_metadata_t gh_intr_md);
control GhostT(in ghost_intrinsic_metadata_t gh_intr_md);
control EgressT<H, M>(inout H hdr, inout M eg_md, in egress_intrinsic_metadata_t eg_intr_md, in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr, inout egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr, inout egress_intrinsic_metadata_for_output_port_t eg_intr_md_for_oport);
control IngressDeparserT<H, M>(packet_out pkt, inout H hdr, in M metadata, in ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr, @optional in ingress_intrinsic_metadata_t ig_intr_md);
control EgressDeparserT<H, M>(packet_out pkt, inout H hdr, in M metadata, in egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr, @optional in egress_intrinsic_metadata_t eg_intr_md, @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr);
package Pipeline<IH, IM, EH, EM>(IngressParserT<IH, IM> ingress_parser, IngressT<IH, IM> ingress, IngressDeparserT<IH, IM> ingress_deparser, EgressParserT<EH, EM> egress_parser, EgressT<EH, EM> egress, EgressDeparserT<EH, EM> egress_deparser, @optional GhostT ghost);
@pkginfo(arch="T2NA", version="1.0.1") @noWarn("unused") package Switch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1, IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(Pipeline<IH0, IM0, EH0, EM0> pipe0, @optional Pipeline<IH1, IM1, EH1, EM1> pipe1, @optional Pipeline<IH2, IM2, EH2, EM2> pipe2, @optional Pipeline<IH3, IM3, EH3, EM3> pipe3);
typedef bit<48> mac_address_t;
typedef bit<32> ipv4_address_t;
typedef bit<8> job_t;
typedef bit<8> worker_t;
typedef bit<32> worker_bitmap_t;
typedef bit<32> session_t;
typedef bit<32> epoch_t;
typedef bit<32> round_t;
typedef bit<32> seq_t;
typedef bit<32> slot_t;
typedef bit<32> total_t;
typedef bit<32> lanes_t;
enum bit<8> op_t {
    HELLO = 8w0x1,
    PUSH = 8w0x2,
    PULL = 8w0x3,
    REPORT = 8w0x4,
    LEAVE = 8w0x5,
    UP = 8w0x6,
    WELCOME = 8w0x81,
    ANSWER = 8w0x82,
    NUDGE = 8w0x83,
    REFUSED = 8w0x84,
    BYE = 8w0x85,
    WAIT = 8w0x86,
    DOWN = 8w0x87,
    GRANT = 8w0x88
}

enum bit<8> read_mode_t {
    LATEST = 8w0,
    SNAPSHOT = 8w1
}

header ethernet_t {
    mac_address_t destination;
    mac_address_t source;
    bit<16>       ether_type;
}

header arp_t {
    bit<16>        hardware_type;
    bit<16>        protocol_type;
    bit<8>         hardware_length;
    bit<8>         protocol_length;
    bit<16>        operation;
    mac_address_t  sender_mac;
    ipv4_address_t sender_ip;
    mac_address_t  target_mac;
    ipv4_address_t target_ip;
}

header ipv4_t {
    bit<4>         version;
    bit<4>         ihl;
    bit<8>         tos;
    bit<16>        total_length;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        fragment_offset;
    bit<8>         ttl;
    bit<8>         protocol;
    bit<16>        checksum;
    ipv4_address_t source;
    ipv4_address_t destination;
}

header udp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> length;
    bit<16> checksum;
}

header serene_t {
    bit<8>          version;
    op_t            op;
    job_t           job;
    worker_t        worker;
    session_t       session;
    epoch_t         epoch;
    round_t         round;
    seq_t           seq;
    slot_t          slot;
    total_t         total;
    bit<32>         seen;
    worker_bitmap_t sync_mask;
    bit<8>          staleness;
    bit<8>          quorum;
    read_mode_t     read_mode;
    bit<8>          members;
}

header membership_t {
    bit<32> vector_length;
    bit<32> slots;
    bit<32> scale;
    bit<32> limit;
    bit<16> lanes;
    bit<8>  workers;
    bit<8>  lost_sessions;
}

header values_t {
    lanes_t lanes_0;
    lanes_t lanes_1;
    lanes_t lanes_2;
    lanes_t lanes_3;
    lanes_t lanes_4;
    lanes_t lanes_5;
    lanes_t lanes_6;
    lanes_t lanes_7;
    lanes_t lanes_8;
    lanes_t lanes_9;
    lanes_t lanes_10;
    lanes_t lanes_11;
    lanes_t lanes_12;
    lanes_t lanes_13;
    lanes_t lanes_14;
    lanes_t lanes_15;
    lanes_t lanes_16;
    lanes_t lanes_17;
    lanes_t lanes_18;
    lanes_t lanes_19;
    lanes_t lanes_20;
    lanes_t lanes_21;
    lanes_t lanes_22;
    lanes_t lanes_23;
    lanes_t lanes_24;
    lanes_t lanes_25;
    lanes_t lanes_26;
    lanes_t lanes_27;
    lanes_t lanes_28;
    lanes_t lanes_29;
    lanes_t lanes_30;
    lanes_t lanes_31;
    lanes_t lanes_32;
    lanes_t lanes_33;
    lanes_t lanes_34;
    lanes_t lanes_35;
    lanes_t lanes_36;
    lanes_t lanes_37;
    lanes_t lanes_38;
    lanes_t lanes_39;
    lanes_t lanes_40;
    lanes_t lanes_41;
    lanes_t lanes_42;
    lanes_t lanes_43;
    lanes_t lanes_44;
    lanes_t lanes_45;
    lanes_t lanes_46;
    lanes_t lanes_47;
    lanes_t lanes_48;
    lanes_t lanes_49;
    lanes_t lanes_50;
    lanes_t lanes_51;
    lanes_t lanes_52;
    lanes_t lanes_53;
    lanes_t lanes_54;
    lanes_t lanes_55;
    lanes_t lanes_56;
    lanes_t lanes_57;
    lanes_t lanes_58;
    lanes_t lanes_59;
}

@controller_header("packet_in") header packet_in_t {
    bit<7> padding;
    bit<9> ingress_port;
}

@controller_header("packet_out") header packet_out_t {
    bit<7> padding;
    bit<9> egress_port;
}

enum bit<8> purpose_t {
    NONE = 8w0,
    BETWEEN_HOSTS = 8w1,
    WELCOME = 8w2,
    ANSWER = 8w3,
    RELEASE = 8w4,
    NUDGE = 8w5
}

header bridge_t {
    purpose_t purpose;
    bit<7>    padding;
    bit<9>    ingress_port;
}

header called_t {
    worker_bitmap_t waiting;
}

struct headers_t {
    bridge_t     bridge;
    called_t     called;
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    arp_t        arp;
    ipv4_t       ipv4;
    udp_t        udp;
    serene_t     serene;
    membership_t membership;
    values_t     values;
}

enum bit<8> request_t {
    MALFORMED = 8w0,
    BAD_CHECKSUM = 8w1,
    WRONG_SLOT = 8w2,
    REPORT = 8w3,
    HELLO = 8w4,
    PULL = 8w8,
    PUSH = 8w9,
    WRONG_ROUND = 8w10,
    COMPLETION = 8w12
}

enum bit<8> refusal_t {
    NONE = 8w0,
    MALFORMED = 8w1,
    BAD_CHECKSUM = 8w2,
    STRANGER = 8w3,
    NO_POLICY = 8w4,
    WRONG_SESSION = 8w5,
    WRONG_SLOT = 8w6
}

enum bit<8> verdict_t {
    NONE = 8w0,
    WRONG_ROUND = 8w1,
    READ = 8w2,
    OPENING = 8w3,
    FREE = 8w4,
    GO = 8w5,
    WAIT = 8w6,
    COMPLETED = 8w8,
    OVERTAKEN = 8w9,
    OLD_SESSION = 8w10
}

enum bit<8> lanes_do_t {
    NOTHING = 8w0,
    ADD = 8w1,
    ADD_READ_SNAPSHOT = 8w2,
    OPEN = 8w3,
    STORE = 8w4
}

struct policy_t {
    session_t       session;
    epoch_t         epoch;
    worker_bitmap_t sync_mask;
    bit<8>          staleness;
    bit<8>          quorum;
    read_mode_t     read_mode;
    bit<8>          members;
}

struct job_parameters_t {
    bit<32> vector_length;
    bit<32> slots;
    bit<32> scale;
    bit<32> limit;
    bit<8>  workers;
    bit<8>  lost_sessions;
}

struct metadata_t {
    bool             checksum_error;
    request_t        request;
    policy_t         policy;
    job_parameters_t job;
    ipv4_address_t   claimed_ip;
    bit<1>           impostor;
    bit<1>           answered;
    bit<1>           member;
    bit<1>           known_job;
    bit<1>           known_policy;
    bit<16>          group;
    slot_t           slot;
    slot_t           room;
    session_t        session_gap;
    epoch_t          epoch_gap;
    bit<16>          other_bytes;
    refusal_t        refusal;
    worker_bitmap_t  sender;
    bit<32>          era;
    round_t          allowance;
    bit<32>          bound;
    bit<32>          mark;
    bit<32>          target;
    bit<1>           admitted;
    bit<1>           current;
    bit<1>           counted;
    bit<8>           age_of_slot;
    bit<8>           ahead;
    bit<8>           behind;
    verdict_t        verdict;
    lanes_do_t       lanes_do;
    seq_t            known;
    seq_t            seen;
    round_t          minus_base;
    round_t          before_base;
    bit<32>          arrived;
    bit<1>           round_counted;
    bit<32>          lacking;
    worker_bitmap_t  waiting;
    total_t          unread;
    bit<4>           rounds_old;
}

struct egress_metadata_t {
    worker_t        receiver;
    worker_bitmap_t receiver_bit;
    worker_bitmap_t released;
    worker_t        to_other;
    bit<1>          serene;
}

struct learned_source_t {
    mac_address_t source;
    bit<9>        port;
}

parser SereneParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    @name("SereneParser.ipv4_checksum") Checksum() ipv4_checksum_0;
    state start {
        packet.extract<ingress_intrinsic_metadata_t>(ig_intr_md);
        packet.advance(32w192);
        meta.request = request_t.MALFORMED;
        meta.member = 1w0;
        meta.known_job = 1w0;
        meta.known_policy = 1w0;
        meta.room = 32w0;
        meta.claimed_ip = 32w0;
        meta.impostor = 1w0;
        meta.answered = 1w0;
        meta.refusal = refusal_t.NONE;
        meta.admitted = 1w0;
        meta.current = 1w0;
        meta.counted = 1w0;
        meta.ahead = 8w0;
        meta.behind = 8w0;
        meta.age_of_slot = 8w0;
        meta.verdict = verdict_t.NONE;
        meta.lanes_do = lanes_do_t.NOTHING;
        meta.known = 32w0;
        meta.arrived = 32w0;
        meta.unread = 32w0;
        meta.round_counted = 1w0;
        meta.waiting = 32w0;
        transition select(ig_intr_md.ingress_port) {
            9w0: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract<packet_out_t>(hdr.packet_out);
        transition accept;
    }
    state parse_ethernet {
        packet.extract<ethernet_t>(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            16w0x806: parse_arp;
            16w0x800: parse_ipv4;
            default: accept;
        }
    }
    state parse_arp {
        packet.extract<arp_t>(hdr.arp);
        transition accept;
    }
    state parse_ipv4 {
        packet.extract<ipv4_t>(hdr.ipv4);
        ipv4_checksum_0.add<ipv4_t>(hdr.ipv4);
        meta.checksum_error = ipv4_checksum_0.verify();
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags[0:0], hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4w4, 4w5, 1w0, 13w0, 8w17): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract<udp_t>(hdr.udp);
        transition select(hdr.udp.destination_port) {
            16w24142: parse_serene;
            default: accept;
        }
    }
    state parse_serene {
        packet.extract<serene_t>(hdr.serene);
        transition select(hdr.serene.op) {
            op_t.HELLO: parse_membership;
            op_t.PUSH: parse_values;
            op_t.PULL: parse_values;
            default: accept;
        }
    }
    state parse_membership {
        packet.extract<membership_t>(hdr.membership);
        transition accept;
    }
    state parse_values {
        packet.extract<values_t>(hdr.values);
        transition accept;
    }
}

control SereneDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta, in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md, in ingress_intrinsic_metadata_t ig_intr_md) {
    @name("SereneDeparser.learned_source_t") Digest<learned_source_t>(3w1) learned_0;
    apply {
        if (ig_dprsr_md.digest_type == 3w1) {
            learned_0.pack((learned_source_t){source = hdr.ethernet.source,port = ig_intr_md.ingress_port});
        }
        packet.emit<bridge_t>(hdr.bridge);
        packet.emit<called_t>(hdr.called);
        packet.emit<ethernet_t>(hdr.ethernet);
        packet.emit<arp_t>(hdr.arp);
        packet.emit<ipv4_t>(hdr.ipv4);
        packet.emit<udp_t>(hdr.udp);
        packet.emit<serene_t>(hdr.serene);
        packet.emit<membership_t>(hdr.membership);
        packet.emit<values_t>(hdr.values);
    }
}

parser SereneEgressParser(packet_in packet, out headers_t hdr, out egress_metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract<egress_intrinsic_metadata_t>(eg_intr_md);
        packet.extract<bridge_t>(hdr.bridge);
        transition select(hdr.bridge.purpose) {
            purpose_t.WELCOME: parse_answer;
            purpose_t.ANSWER: parse_answer;
            purpose_t.RELEASE: parse_answer;
            purpose_t.NUDGE: parse_answer;
            default: accept;
        }
    }
    state parse_answer {
        meta.serene = 1w1;
        packet.extract<called_t>(hdr.called);
        packet.extract<ethernet_t>(hdr.ethernet);
        packet.extract<ipv4_t>(hdr.ipv4);
        packet.extract<udp_t>(hdr.udp);
        packet.extract<serene_t>(hdr.serene);
        transition accept;
    }
}

control SereneEgressDeparser(packet_out packet, inout headers_t hdr, in egress_metadata_t meta, in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    @name("SereneEgressDeparser.ipv4_checksum") Checksum() ipv4_checksum_1;
    apply {
        if (meta.serene == 1w1) {
            hdr.ipv4.checksum = ipv4_checksum_1.update<tuple<bit<4>, bit<4>, bit<8>, bit<16>, bit<16>, bit<3>, bit<13>, bit<8>, bit<8>, bit<32>, bit<32>>>({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination });
        }
        packet.emit<packet_in_t>(hdr.packet_in);
        packet.emit<ethernet_t>(hdr.ethernet);
        packet.emit<ipv4_t>(hdr.ipv4);
        packet.emit<udp_t>(hdr.udp);
        packet.emit<serene_t>(hdr.serene);
    }
}

struct lane_t {
    bit<32> sum;
    bit<32> snapshot;
}

struct base_t {
    int<32> era;
    int<32> minus_base;
}

struct seen_t {
    session_t session;
    seq_t     seq;
}

struct arrivals_t {
    bit<32> era;
    bit<32> word;
}

struct total_pair_t {
    total_t total;
    total_t unread;
}

@pa_container_size("ingress", "meta.waiting", 32) control SereneIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md, in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md, inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    @name("SereneIngress.forwarding.asked") ipv4_address_t forwarding_asked;
    @name("SereneIngress.barrier.place") bit<16> barrier_place;
    @name("SereneIngress.barrier.place") bit<16> barrier_place_0;
    @name("SereneIngress.barrier.place") bit<16> barrier_place_1;
    @name("SereneIngress.barrier.place") bit<16> barrier_place_2;
    @name("SereneIngress.contributed.index") bit<12> contributed_index;
    @name("SereneIngress.contributed.index") bit<8> contributed_index_0;
    @name("SereneIngress.contributed.index") bit<8> contributed_index_1;
    @name("SereneIngress.contributed.index") bit<8> contributed_index_2;
    @noWarn("unused") @name(".NoAction") action NoAction_1() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_2() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_3() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_4() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_5() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_6() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_7() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_8() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_9() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_10() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_11() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_12() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_13() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_14() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_15() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_16() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_17() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_18() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_19() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_20() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_21() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_22() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_23() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_24() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_25() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_26() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_27() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_28() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_29() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_30() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_31() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_32() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_33() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_34() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_35() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_36() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_37() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_38() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_39() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_40() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_41() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_42() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_43() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_44() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_45() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_46() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_47() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_48() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_49() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_50() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_51() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_52() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_53() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_54() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_55() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_56() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_57() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_58() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_59() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_60() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_61() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_62() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_63() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_64() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_65() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_66() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_67() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_68() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_69() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_70() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_71() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_72() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_73() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_74() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_75() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_76() {
    }
    @noWarn("unused") @name(".NoAction") action NoAction_77() {
    }
    @name("SereneIngress.forwarding.dropped_impostor") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) forwarding_dropped_impostor;
    @name("SereneIngress.forwarding.dropped_tagged") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) forwarding_dropped_tagged;
    @name("SereneIngress.forwarding.claim_by_arp") action forwarding_claim_by_arp_0() {
        meta.claimed_ip = hdr.arp.sender_ip;
    }
    @name("SereneIngress.forwarding.claim_by_ip") action forwarding_claim_by_ip_0() {
        meta.claimed_ip = hdr.ipv4.source;
    }
    @name("SereneIngress.forwarding.impostor") action forwarding_impostor_0() {
        meta.impostor = 1w1;
    }
    @name("SereneIngress.forwarding.impostor") action forwarding_impostor_1() {
        meta.impostor = 1w1;
    }
    @name("SereneIngress.forwarding.switch_mac") table forwarding_switch_mac {
        key = {
            hdr.ethernet.source: exact @name("mac");
        }
        actions = {
            forwarding_impostor_0();
            NoAction_1();
        }
        const default_action = NoAction_1();
        size = 16;
    }
    @name("SereneIngress.forwarding.switch_ip") table forwarding_switch_ip {
        key = {
            meta.claimed_ip: exact @name("ip");
        }
        actions = {
            forwarding_impostor_1();
            NoAction_2();
        }
        const default_action = NoAction_2();
        size = 16;
    }
    @name("SereneIngress.forwarding.count_impostor") action forwarding_count_impostor_0() {
        forwarding_dropped_impostor.count(1w0);
    }
    @name("SereneIngress.forwarding.count_tagged") action forwarding_count_tagged_0() {
        forwarding_dropped_tagged.count(1w0);
    }
    @name("SereneIngress.forwarding.learn") action forwarding_learn_0() {
        ig_dprsr_md.digest_type = 3w1;
    }
    @name("SereneIngress.forwarding.known_source") table forwarding_known_source {
        key = {
            hdr.ethernet.source    : exact @name("source");
            ig_intr_md.ingress_port: exact @name("port");
        }
        actions = {
            NoAction_3();
            forwarding_learn_0();
        }
        const default_action = forwarding_learn_0();
        size = 1024;
    }
    @name("SereneIngress.forwarding.flood") action forwarding_flood_0() {
        hdr.bridge.purpose = purpose_t.BETWEEN_HOSTS;
        ig_tm_md.mcast_grp_a = 16w1;
    }
    @name("SereneIngress.forwarding.to_port") action forwarding_to_port_0(@name("port") bit<9> port_1) {
        hdr.bridge.purpose = purpose_t.BETWEEN_HOSTS;
        ig_tm_md.ucast_egress_port = port_1;
    }
    @name("SereneIngress.forwarding.forward") table forwarding_forward {
        key = {
            hdr.ethernet.destination: exact @name("destination");
        }
        actions = {
            forwarding_to_port_0();
            forwarding_flood_0();
        }
        const default_action = forwarding_flood_0();
        size = 1024;
    }
    @name("SereneIngress.forwarding.answer_arp") action forwarding_answer_arp_0(@name("mac") mac_address_t mac) {
        hdr.ethernet.destination = hdr.arp.sender_mac;
        hdr.ethernet.source = mac;
        forwarding_asked = hdr.arp.target_ip;
        hdr.arp.operation = 16w2;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = forwarding_asked;
        meta.answered = 1w1;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }
    @name("SereneIngress.forwarding.switch_address") table forwarding_switch_address {
        key = {
            hdr.arp.target_ip: exact @name("ip");
        }
        actions = {
            forwarding_answer_arp_0();
            NoAction_4();
        }
        const default_action = NoAction_4();
        size = 16;
    }
    @name("SereneIngress.admission.classify") action admission_classify_0(@name("request") request_t request_1) {
        meta.request = request_1;
    }
    @name("SereneIngress.admission.verdict") table admission_verdict {
        key = {
            meta.checksum_error    : ternary @name("meta.checksum_error");
            ig_prsr_md.parser_err  : ternary @name("ig_prsr_md.parser_err");
            ig_intr_md.ingress_port: ternary @name("ig_intr_md.ingress_port");
            hdr.serene.version     : ternary @name("hdr.serene.version");
            hdr.serene.op          : ternary @name("hdr.serene.op");
            hdr.udp.length         : ternary @name("hdr.udp.length");
            hdr.ipv4.total_length  : ternary @name("hdr.ipv4.total_length");
            hdr.serene.slot        : ternary @name("hdr.serene.slot");
            hdr.serene.round       : ternary @name("hdr.serene.round");
        }
        actions = {
            admission_classify_0();
        }
        const default_action = admission_classify_0(request_t.MALFORMED);
        const entries = {
                        (true, default, default, default, default, default, default, default, default) : admission_classify_0(request_t.BAD_CHECKSUM);
                        (false, 16w0, 9w6, 8w2, op_t.PUSH, 16w288, 16w308, 32w0 &&& 32w4294963200, 32w0 &&& 32w0xff000000) : admission_classify_0(request_t.COMPLETION);
                        (false, 16w0, default, 8w2, op_t.PUSH, 16w288, 16w308, 32w0 &&& 32w4294963200, 32w0 &&& 32w0xff000000) : admission_classify_0(request_t.PUSH);
                        (false, 16w0, default, 8w2, op_t.PULL, 16w288, 16w308, 32w0 &&& 32w4294963200, default) : admission_classify_0(request_t.PULL);
                        (false, 16w0, default, 8w2, op_t.PUSH, 16w288, 16w308, 32w0 &&& 32w4294963200, default) : admission_classify_0(request_t.WRONG_ROUND);
                        (false, 16w0, default, 8w2, op_t.PUSH, 16w288, 16w308, default, default) : admission_classify_0(request_t.WRONG_SLOT);
                        (false, 16w0, default, 8w2, op_t.PULL, 16w288, 16w308, default, default) : admission_classify_0(request_t.WRONG_SLOT);
                        (false, 16w0, default, 8w2, op_t.HELLO, 16w68, 16w88, default, default) : admission_classify_0(request_t.HELLO);
                        (false, 16w0, default, 8w2, op_t.REPORT, default, default, default, default) : admission_classify_0(request_t.REPORT);
                        (false, 16w0, default, 8w2, op_t.LEAVE, default, default, default, default) : admission_classify_0(request_t.REPORT);
        }
        size = 16;
    }
    @name("SereneIngress.admission.admit") action admission_admit_0() {
        meta.member = 1w1;
    }
    @name("SereneIngress.admission.member") table admission_member {
        key = {
            ig_intr_md.ingress_port: exact @name("port");
            hdr.ethernet.source    : exact @name("mac");
            hdr.ipv4.source        : exact @name("ip");
            hdr.udp.source_port    : exact @name("udp_port");
            hdr.serene.job         : exact @name("job");
            hdr.serene.worker      : exact @name("worker");
            hdr.serene.seen        : exact @name("incarnation");
        }
        actions = {
            admission_admit_0();
            NoAction_5();
        }
        const default_action = NoAction_5();
        size = 256;
    }
    @name("SereneIngress.admission.set_job") action admission_set_job_0(@name("first_slot") slot_t first_slot, @name("slots") slot_t slots_1, @name("vector_length") bit<32> vector_length_1, @name("scale") bit<32> scale_1, @name("limit") bit<32> limit_1, @name("workers") bit<8> workers_1, @name("lost_sessions") bit<8> lost_sessions_1, @name("share") bit<32> share) {
        meta.known_job = 1w1;
        meta.slot = hdr.serene.slot + first_slot;
        meta.room = slots_1 - hdr.serene.slot;
        meta.job.vector_length = vector_length_1;
        meta.job.slots = slots_1;
        meta.job.scale = scale_1;
        meta.job.limit = limit_1;
        meta.job.workers = workers_1;
        meta.job.lost_sessions = lost_sessions_1;
    }
    @name("SereneIngress.admission.job") table admission_job {
        key = {
            hdr.serene.job: exact @name("job");
        }
        actions = {
            admission_set_job_0();
            NoAction_6();
        }
        const default_action = NoAction_6();
        size = 8;
    }
    @name("SereneIngress.admission.set_policy") action admission_set_policy_0(@name("session") session_t session_1, @name("epoch") epoch_t epoch_1, @name("member_mask") worker_bitmap_t member_mask, @name("sync_mask") worker_bitmap_t sync_mask_1, @name("staleness") bit<32> staleness_0, @name("quorum") bit<32> quorum_1, @name("read_mode") read_mode_t read_mode_1, @name("members") bit<8> members_1) {
        meta.known_policy = 1w1;
        meta.session_gap = session_1 - hdr.serene.session;
        meta.epoch_gap = epoch_1 - hdr.serene.epoch;
        meta.allowance = staleness_0 - hdr.serene.round;
        meta.bound = staleness_0;
        meta.target = quorum_1;
        meta.policy.session = session_1;
        meta.policy.epoch = epoch_1;
        meta.policy.sync_mask = sync_mask_1;
        meta.policy.staleness = staleness_0[7:0];
        meta.policy.quorum = quorum_1[7:0];
        meta.policy.read_mode = read_mode_1;
        meta.policy.members = members_1;
    }
    @name("SereneIngress.admission.policy") table admission_policy {
        key = {
            hdr.serene.job: exact @name("job");
        }
        actions = {
            admission_set_policy_0();
            NoAction_7();
        }
        const default_action = NoAction_7();
        size = 8;
    }
    @name("SereneIngress.admission.to_controller") action admission_to_controller_0() {
        ig_tm_md.ucast_egress_port = 9w0;
    }
    @name("SereneIngress.admission.refuse") action admission_refuse_0(@name("reason") refusal_t reason) {
        meta.refusal = reason;
    }
    @name("SereneIngress.admission.subtract_lengths") action admission_subtract_lengths_0() {
        meta.other_bytes = hdr.ipv4.total_length - hdr.udp.length;
    }
    @name("SereneIngress.admission.refused") table admission_refused {
        key = {
            meta.request     : ternary @name("meta.request");
            meta.member      : ternary @name("meta.member");
            meta.known_job   : ternary @name("meta.known_job");
            meta.known_policy: ternary @name("meta.known_policy");
            meta.session_gap : ternary @name("meta.session_gap");
            meta.room        : ternary @name("meta.room");
            meta.other_bytes : ternary @name("meta.other_bytes");
        }
        actions = {
            admission_refuse_0();
            admission_to_controller_0();
            NoAction_8();
        }
        const default_action = NoAction_8();
        const entries = {
                        (request_t.BAD_CHECKSUM, default, default, default, default, default, default) : admission_refuse_0(refusal_t.BAD_CHECKSUM);
                        (request_t.MALFORMED, default, default, default, default, default, default) : admission_refuse_0(refusal_t.MALFORMED);
                        (request_t.REPORT, 1w1, default, default, default, default, 16w20) : admission_to_controller_0();
                        (request_t.REPORT, 1w0, default, default, default, default, 16w20) : admission_refuse_0(refusal_t.STRANGER);
                        (request_t.REPORT, default, default, default, default, default, default) : admission_refuse_0(refusal_t.MALFORMED);
                        (request_t.HELLO, 1w0, default, default, default, default, default) : admission_to_controller_0();
                        (request_t.PULL, 1w0, default, default, default, default, default) : admission_refuse_0(refusal_t.STRANGER);
                        (request_t.PUSH, 1w0, default, default, default, default, default) : admission_refuse_0(refusal_t.STRANGER);
                        (request_t.WRONG_ROUND, 1w0, default, default, default, default, default) : admission_refuse_0(refusal_t.STRANGER);
                        (request_t.WRONG_SLOT, 1w0, default, default, default, default, default) : admission_refuse_0(refusal_t.STRANGER);
                        (default, default, 1w0, default, default, default, default) : admission_refuse_0(refusal_t.NO_POLICY);
                        (default, default, default, 1w0, default, default, default) : admission_refuse_0(refusal_t.NO_POLICY);
                        (request_t.HELLO, default, default, default, default, default, default) : NoAction_8();
                        (request_t.WRONG_SLOT, default, default, default, 32w0, default, default) : admission_refuse_0(refusal_t.WRONG_SLOT);
                        (default, default, default, default, 32w0, 32w0, default) : admission_refuse_0(refusal_t.WRONG_SLOT);
                        (default, default, default, default, 32w0, 32w0x80000000 &&& 32w0x80000000, default) : admission_refuse_0(refusal_t.WRONG_SLOT);
                        (default, default, default, default, 32w0, default, default) : NoAction_8();
                        (default, default, default, default, default, default, default) : admission_refuse_0(refusal_t.WRONG_SESSION);
        }
        size = 32;
    }
    @name("SereneIngress.barrier.set_sender") action barrier_set_sender_0(@name("sender") worker_bitmap_t sender_1) {
        meta.sender = sender_1;
    }
    @name("SereneIngress.barrier.sender_bit") table barrier_sender_bit {
        key = {
            hdr.serene.worker: exact @name("hdr.serene.worker");
        }
        actions = {
            barrier_set_sender_0();
        }
        const default_action = barrier_set_sender_0(32w0);
        const entries = {
                        8w0 : barrier_set_sender_0(32w1);
                        8w1 : barrier_set_sender_0(32w2);
                        8w2 : barrier_set_sender_0(32w4);
                        8w3 : barrier_set_sender_0(32w8);
                        8w4 : barrier_set_sender_0(32w16);
                        8w5 : barrier_set_sender_0(32w32);
                        8w6 : barrier_set_sender_0(32w64);
                        8w7 : barrier_set_sender_0(32w128);
                        8w8 : barrier_set_sender_0(32w256);
                        8w9 : barrier_set_sender_0(32w512);
                        8w10 : barrier_set_sender_0(32w1024);
                        8w11 : barrier_set_sender_0(32w2048);
                        8w12 : barrier_set_sender_0(32w4096);
                        8w13 : barrier_set_sender_0(32w8192);
                        8w14 : barrier_set_sender_0(32w16384);
                        8w15 : barrier_set_sender_0(32w32768);
        }
        size = 32;
    }
    @name("SereneIngress.barrier.count_sender") action barrier_count_sender_0() {
        meta.counted = 1w1;
    }
    @name("SereneIngress.barrier.counted_in") table barrier_counted_in {
        key = {
            meta.policy.sync_mask: ternary @name("meta.policy.sync_mask");
            hdr.serene.worker    : ternary @name("hdr.serene.worker");
            meta.policy.staleness: ternary @name("meta.policy.staleness");
            meta.policy.quorum   : ternary @name("meta.policy.quorum");
        }
        actions = {
            barrier_count_sender_0();
            NoAction_9();
        }
        const default_action = NoAction_9();
        const entries = {
                        (default, default, 8w255, default) : NoAction_9();
                        (default, default, default, 8w0) : NoAction_9();
                        (32w1 &&& 32w1, 8w0, default, default) : barrier_count_sender_0();
                        (32w2 &&& 32w2, 8w1, default, default) : barrier_count_sender_0();
                        (32w4 &&& 32w4, 8w2, default, default) : barrier_count_sender_0();
                        (32w8 &&& 32w8, 8w3, default, default) : barrier_count_sender_0();
                        (32w16 &&& 32w16, 8w4, default, default) : barrier_count_sender_0();
                        (32w32 &&& 32w32, 8w5, default, default) : barrier_count_sender_0();
                        (32w64 &&& 32w64, 8w6, default, default) : barrier_count_sender_0();
                        (32w128 &&& 32w128, 8w7, default, default) : barrier_count_sender_0();
                        (32w256 &&& 32w256, 8w8, default, default) : barrier_count_sender_0();
                        (32w512 &&& 32w512, 8w9, default, default) : barrier_count_sender_0();
                        (32w1024 &&& 32w1024, 8w10, default, default) : barrier_count_sender_0();
                        (32w2048 &&& 32w2048, 8w11, default, default) : barrier_count_sender_0();
                        (32w4096 &&& 32w4096, 8w12, default, default) : barrier_count_sender_0();
                        (32w8192 &&& 32w8192, 8w13, default, default) : barrier_count_sender_0();
                        (32w16384 &&& 32w16384, 8w14, default, default) : barrier_count_sender_0();
                        (32w32768 &&& 32w32768, 8w15, default, default) : barrier_count_sender_0();
        }
        size = 34;
    }
    @name("SereneIngress.barrier.era_hash") Hash<bit<32>>(HashAlgorithm_t.CRC32) barrier_era_hash;
    @name("SereneIngress.barrier.set_era") action barrier_set_era_0() {
        meta.era = barrier_era_hash.get<tuple<bit<32>, bit<32>>>({ hdr.serene.session, hdr.serene.epoch });
    }
    @name("SereneIngress.barrier.set_mark") action barrier_set_mark_0() {
        meta.mark = hdr.serene.round << 8;
    }
    @name("SereneIngress.barrier.set_target") action barrier_set_target_0() {
        meta.target = meta.target + meta.mark;
    }
    @name("SereneIngress.barrier.session_of") Register<session_t, bit<12>>(32w2816) barrier_session_of;
    @name("SereneIngress.barrier.enter_session") RegisterAction<session_t, bit<12>, bit<8>>(barrier_session_of) barrier_enter_session = {
        void apply(inout session_t value, out bit<8> age) {
            age = this.predicate(value < hdr.serene.session, value > hdr.serene.session);
            if (value < hdr.serene.session) {
                value = hdr.serene.session;
            }
        }
    };
    @name("SereneIngress.barrier.base_below") Register<base_t, bit<12>>(32w2816) barrier_base_below;
    @name("SereneIngress.barrier.compare_ahead") RegisterAction<base_t, bit<12>, bit<8>>(barrier_base_below) barrier_compare_ahead = {
        void apply(inout base_t value, out bit<8> ahead) {
            ahead = this.predicate(value.era != (int<32>)meta.era, value.minus_base > (int<32>)meta.allowance);
            if (value.era != (int<32>)meta.era) {
                value.era = (int<32>)meta.era;
                value.minus_base = 32s0;
            }
        }
    };
    @name("SereneIngress.barrier.complete_below") RegisterAction<base_t, bit<12>, bit<8>>(barrier_base_below) barrier_complete_below = {
        void apply(inout base_t value, out bit<8> moved) {
            moved = this.predicate(value.era != (int<32>)meta.era, value.minus_base >= (int<32>)meta.allowance);
            if (value.era == (int<32>)meta.era && value.minus_base >= (int<32>)meta.allowance) {
                value.minus_base = (int<32>)meta.allowance + -32s1;
            }
        }
    };
    @name("SereneIngress.barrier.base_beyond") Register<base_t, bit<12>>(32w2816) barrier_base_beyond;
    @name("SereneIngress.barrier.compare_behind") RegisterAction<base_t, bit<12>, bit<8>>(barrier_base_beyond) barrier_compare_behind = {
        void apply(inout base_t value, out bit<8> behind) {
            behind = 8w0;
            if (value.era == (int<32>)meta.era && value.minus_base < (int<32>)meta.allowance) {
                behind = 8w1;
            }
            if (value.era != (int<32>)meta.era) {
                value.era = (int<32>)meta.era;
                value.minus_base = 32s0;
            }
        }
    };
    @name("SereneIngress.barrier.complete_beyond") RegisterAction<base_t, bit<12>, bit<8>>(barrier_base_beyond) barrier_complete_beyond = {
        void apply(inout base_t value) {
            if (value.era == (int<32>)meta.era && value.minus_base >= (int<32>)meta.allowance) {
                value.minus_base = (int<32>)meta.allowance + -32s1;
            }
        }
    };
    @name("SereneIngress.barrier.base_of") Register<base_t, bit<12>>(32w2816) barrier_base_of;
    @name("SereneIngress.barrier.current_base") RegisterAction<base_t, bit<12>, bit<32>>(barrier_base_of) barrier_current_base = {
        void apply(inout base_t value, out bit<32> minus_base) {
            if (value.era != (int<32>)meta.era) {
                value.era = (int<32>)meta.era;
                value.minus_base = 32s0;
            }
            minus_base = (bit<32>)value.minus_base;
        }
    };
    @name("SereneIngress.barrier.some_base") RegisterAction<base_t, bit<12>, bit<32>>(barrier_base_of) barrier_some_base = {
        void apply(inout base_t value, out bit<32> minus_base) {
            minus_base = (bit<32>)value.minus_base;
        }
    };
    @name("SereneIngress.barrier.complete_base") RegisterAction<base_t, bit<12>, bit<32>>(barrier_base_of) barrier_complete_base = {
        void apply(inout base_t value, out bit<32> minus_base) {
            if (value.era == (int<32>)meta.era && value.minus_base >= (int<32>)meta.allowance) {
                value.minus_base = (int<32>)meta.allowance + -32s1;
            }
            minus_base = (bit<32>)value.minus_base;
        }
    };
    @name("SereneIngress.barrier.look_at_session") action barrier_look_at_session_0() {
        meta.age_of_slot = barrier_enter_session.execute(meta.slot[11:0]);
        meta.admitted = 1w1;
    }
    @name("SereneIngress.barrier.seen_of") Register<seen_t, bit<16>>(32w45056) barrier_seen_of;
    @name("SereneIngress.barrier.accept_seq") RegisterAction<seen_t, bit<16>, bit<32>>(barrier_seen_of) barrier_accept_seq = {
        void apply(inout seen_t value, out bit<32> known) {
            known = 32w0;
            if (value.session == hdr.serene.session && value.seq >= hdr.serene.seq) {
                known = value.seq;
            } else {
                value.session = hdr.serene.session;
                value.seq = hdr.serene.seq;
            }
        }
    };
    @name("SereneIngress.barrier.read_seq") RegisterAction<seen_t, bit<16>, bit<32>>(barrier_seen_of) barrier_read_seq = {
        void apply(inout seen_t value, out bit<32> seen) {
            seen = 32w0;
            if (value.session == hdr.serene.session) {
                seen = value.seq;
            }
        }
    };
    @name("SereneIngress.barrier.seen_place") Hash<bit<16>>(HashAlgorithm_t.IDENTITY) barrier_seen_place;
    @name("SereneIngress.barrier.accept") action barrier_accept_0(@name("verdict") verdict_t verdict_0, @name("lanes_do") lanes_do_t lanes_do_3) {
        meta.verdict = verdict_0;
        meta.lanes_do = lanes_do_3;
        barrier_place = barrier_seen_place.get<tuple<bit<12>, bit<4>>>({ meta.slot[11:0], hdr.serene.worker[3:0] });
        meta.known = barrier_accept_seq.execute(barrier_place);
    }
    @name("SereneIngress.barrier.look") action barrier_look_0(@name("verdict") verdict_t verdict_4, @name("lanes_do") lanes_do_t lanes_do_4, @name("known") bit<32> known_1) {
        meta.verdict = verdict_4;
        meta.lanes_do = lanes_do_4;
        meta.known = known_1;
        barrier_place_0 = barrier_seen_place.get<tuple<bit<12>, bit<4>>>({ meta.slot[11:0], hdr.serene.worker[3:0] });
        meta.seen = barrier_read_seq.execute(barrier_place_0);
    }
    @name("SereneIngress.barrier.settle") action barrier_settle_0(@name("verdict") verdict_t verdict_5, @name("lanes_do") lanes_do_t lanes_do_5) {
        meta.verdict = verdict_5;
        meta.lanes_do = lanes_do_5;
        meta.known = 32w1;
    }
    @name("SereneIngress.barrier.decide") table barrier_decide {
        key = {
            meta.admitted        : ternary @name("meta.admitted");
            meta.request         : ternary @name("meta.request");
            meta.current         : ternary @name("meta.current");
            meta.counted         : ternary @name("meta.counted");
            meta.age_of_slot     : ternary @name("meta.age_of_slot");
            meta.ahead           : ternary @name("meta.ahead");
            meta.behind          : ternary @name("meta.behind");
            meta.policy.staleness: ternary @name("meta.policy.staleness");
            meta.policy.read_mode: ternary @name("meta.policy.read_mode");
            hdr.serene.seq       : ternary @name("hdr.serene.seq");
        }
        actions = {
            barrier_accept_0();
            barrier_look_0();
            barrier_settle_0();
            @defaultonly NoAction_10();
        }
        const default_action = NoAction_10();
        const entries = {
                        (1w1, request_t.COMPLETION, 1w1, default, default, 8w4, default, default, default, default) : barrier_settle_0(verdict_t.COMPLETED, lanes_do_t.STORE);
                        (1w1, request_t.COMPLETION, default, default, default, default, default, default, default, default) : barrier_settle_0(verdict_t.OVERTAKEN, lanes_do_t.NOTHING);
                        (1w1, default, default, default, 8w4, default, default, default, default, default) : barrier_settle_0(verdict_t.OLD_SESSION, lanes_do_t.NOTHING);
                        (1w1, request_t.PULL, default, default, 8w2, default, default, default, default, default) : barrier_look_0(verdict_t.READ, lanes_do_t.OPEN, 32w0);
                        (1w1, request_t.PULL, default, default, default, default, default, default, default, default) : barrier_look_0(verdict_t.READ, lanes_do_t.ADD, 32w1);
                        (1w1, request_t.WRONG_ROUND, default, default, default, default, default, default, default, default) : barrier_look_0(verdict_t.WRONG_ROUND, lanes_do_t.NOTHING, 32w1);
                        (1w1, request_t.PUSH, default, default, default, default, default, default, default, 32w0) : barrier_look_0(verdict_t.WRONG_ROUND, lanes_do_t.NOTHING, 32w1);
                        (1w1, request_t.PUSH, default, default, 8w2, default, default, default, default, default) : barrier_look_0(verdict_t.OPENING, lanes_do_t.OPEN, 32w0);
                        (1w1, request_t.PUSH, 1w1, default, default, 8w0 &&& 8w0b101, default, default, default, default) : barrier_look_0(verdict_t.OPENING, lanes_do_t.OPEN, 32w1);
                        (1w1, request_t.PUSH, 1w1, 1w1, default, 8w4, default, default, default, default) : barrier_look_0(verdict_t.WRONG_ROUND, lanes_do_t.NOTHING, 32w1);
                        (1w1, request_t.PUSH, 1w1, 1w1, default, default, 8w1, 8w0, read_mode_t.SNAPSHOT, default) : barrier_accept_0(verdict_t.FREE, lanes_do_t.ADD_READ_SNAPSHOT);
                        (1w1, request_t.PUSH, 1w1, 1w1, default, default, 8w1, default, default, default) : barrier_accept_0(verdict_t.GO, lanes_do_t.ADD);
                        (1w1, request_t.PUSH, 1w1, 1w1, default, default, default, default, default, default) : barrier_accept_0(verdict_t.WAIT, lanes_do_t.ADD);
                        (1w1, request_t.PUSH, default, default, default, default, default, default, default, default) : barrier_accept_0(verdict_t.FREE, lanes_do_t.ADD);
        }
        size = 16;
    }
    @name("SereneIngress.barrier.waiting_of") Register<worker_bitmap_t, bit<12>>(32w2816) barrier_waiting_of;
    @name("SereneIngress.barrier.call_everybody") RegisterAction<worker_bitmap_t, bit<12>, worker_bitmap_t>(barrier_waiting_of) barrier_call_everybody = {
        void apply(inout worker_bitmap_t value, out worker_bitmap_t waiting) {
            waiting = value;
            value = 32w0;
        }
    };
    @name("SereneIngress.barrier.join_waiting") RegisterAction<worker_bitmap_t, bit<12>, worker_bitmap_t>(barrier_waiting_of) barrier_join_waiting = {
        void apply(inout worker_bitmap_t value) {
            value = value | meta.sender;
        }
    };
    @name("SereneIngress.barrier.leave_waiting") RegisterAction<worker_bitmap_t, bit<12>, worker_bitmap_t>(barrier_waiting_of) barrier_leave_waiting = {
        void apply(inout worker_bitmap_t value) {
            value = value & ~meta.sender;
        }
    };
    @name("SereneIngress.barrier.call") action barrier_call_0() {
        meta.waiting = barrier_call_everybody.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.forget") action barrier_forget_0() {
        barrier_call_everybody.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.join") action barrier_join_0() {
        barrier_join_waiting.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.leave") action barrier_leave_0() {
        barrier_leave_waiting.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.queue") table barrier_queue {
        key = {
            meta.admitted   : ternary @name("meta.admitted");
            meta.request    : ternary @name("meta.request");
            meta.current    : ternary @name("meta.current");
            meta.counted    : ternary @name("meta.counted");
            meta.age_of_slot: ternary @name("meta.age_of_slot");
            meta.ahead      : ternary @name("meta.ahead");
            meta.behind     : ternary @name("meta.behind");
        }
        actions = {
            barrier_call_0();
            barrier_forget_0();
            barrier_join_0();
            barrier_leave_0();
            NoAction_11();
        }
        const default_action = NoAction_11();
        const entries = {
                        (1w1, request_t.COMPLETION, 1w1, default, default, 8w4, default) : barrier_call_0();
                        (1w1, default, default, default, 8w4, default, default) : NoAction_11();
                        (1w1, request_t.PULL, default, default, 8w2, default, default) : barrier_forget_0();
                        (1w1, request_t.PUSH, default, default, 8w2, default, default) : barrier_forget_0();
                        (1w1, request_t.PUSH, 1w1, default, default, 8w0 &&& 8w0b101, default) : barrier_call_0();
                        (1w1, request_t.PUSH, 1w1, 1w1, default, 8w4, default) : NoAction_11();
                        (1w1, request_t.PUSH, 1w1, 1w1, default, default, 8w0) : barrier_join_0();
                        (1w1, request_t.PUSH, default, default, default, default, default) : barrier_leave_0();
        }
        size = 16;
    }
    @name("SereneIngress.barrier.arrivals_of") Register<arrivals_t, bit<16>>(32w45056) barrier_arrivals_of;
    @name("SereneIngress.barrier.count_arrival") RegisterAction<arrivals_t, bit<16>, bit<32>>(barrier_arrivals_of) barrier_count_arrival = {
        void apply(inout arrivals_t value, out bit<32> arrived) {
            if (value.era == meta.era && value.word > meta.mark) {
                value.word = value.word + 32w1;
            } else {
                value.era = meta.era;
                value.word = meta.mark + 32w1;
            }
            arrived = value.word;
        }
    };
    @name("SereneIngress.barrier.read_arrivals") RegisterAction<arrivals_t, bit<16>, bit<32>>(barrier_arrivals_of) barrier_read_arrivals = {
        void apply(inout arrivals_t value, out bit<32> arrived) {
            arrived = 32w0;
            if (value.era == meta.era && value.word > meta.mark) {
                arrived = value.word;
            }
        }
    };
    @name("SereneIngress.barrier.ring_place") Hash<bit<16>>(HashAlgorithm_t.IDENTITY) barrier_ring_place;
    @name("SereneIngress.barrier.arrive") action barrier_arrive_0() {
        barrier_place_1 = barrier_ring_place.get<tuple<bit<12>, bit<4>>>({ meta.slot[11:0], hdr.serene.round[3:0] });
        meta.arrived = barrier_count_arrival.execute(barrier_place_1);
        meta.round_counted = 1w1;
    }
    @name("SereneIngress.barrier.arrive_again") action barrier_arrive_again_0() {
        barrier_place_2 = barrier_ring_place.get<tuple<bit<12>, bit<4>>>({ meta.slot[11:0], hdr.serene.round[3:0] });
        meta.arrived = barrier_read_arrivals.execute(barrier_place_2);
        meta.round_counted = 1w1;
    }
    @name("SereneIngress.barrier.arrival") table barrier_arrival {
        key = {
            meta.verdict    : ternary @name("meta.verdict");
            meta.before_base: ternary @name("meta.before_base");
            meta.known      : ternary @name("meta.known");
        }
        actions = {
            barrier_arrive_0();
            barrier_arrive_again_0();
            @defaultonly NoAction_12();
        }
        const default_action = NoAction_12();
        const entries = {
                        (verdict_t.GO, 32w0 &&& 32w0x80000000, 32w0) : barrier_arrive_0();
                        (verdict_t.GO, 32w0 &&& 32w0x80000000, default) : barrier_arrive_again_0();
                        (verdict_t.WAIT, 32w0 &&& 32w0x80000000, 32w0) : barrier_arrive_0();
                        (verdict_t.WAIT, 32w0 &&& 32w0x80000000, default) : barrier_arrive_again_0();
        }
        size = 4;
    }
    @name("SereneIngress.barrier.find_old_round") action barrier_find_old_round_0() {
        meta.before_base = hdr.serene.round + meta.minus_base;
    }
    @name("SereneIngress.barrier.find_lacking") action barrier_find_lacking_0() {
        meta.lacking = meta.target |-| meta.arrived;
    }
    @name("SereneIngress.barrier.complete_round_below") action barrier_complete_round_below_0() {
        meta.admitted = 1w1;
        meta.current = 1w1;
        meta.ahead = barrier_complete_below.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.complete_round_beyond") action barrier_complete_round_beyond_0() {
        barrier_complete_beyond.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.complete_round") action barrier_complete_round_0() {
        meta.minus_base = barrier_complete_base.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.look_ahead") action barrier_look_ahead_0() {
        meta.current = 1w1;
        meta.ahead = barrier_compare_ahead.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.look_behind") action barrier_look_behind_0() {
        meta.behind = barrier_compare_behind.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.look_at_base") action barrier_look_at_base_0() {
        meta.minus_base = barrier_current_base.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.barrier.look_at_any_base") action barrier_look_at_any_base_0() {
        meta.minus_base = barrier_some_base.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.contributed.total_of") Register<total_pair_t, bit<12>>(32w2816) contributed_total_of;
    @name("SereneIngress.contributed.count_contribution") RegisterAction<total_pair_t, bit<12>, total_t>(contributed_total_of) contributed_count_contribution = {
        void apply(inout total_pair_t value, out total_t unread) {
            value.unread = value.total - hdr.serene.total;
            if (meta.known == 32w0) {
                value.total = value.total + 32w1;
            }
            unread = value.unread;
        }
    };
    @name("SereneIngress.contributed.keep_or_forget_total") RegisterAction<total_pair_t, bit<12>, total_t>(contributed_total_of) contributed_keep_or_forget_total = {
        void apply(inout total_pair_t value) {
            if (meta.known == 32w0) {
                value.total = 32w0;
            }
        }
    };
    @name("SereneIngress.contributed.totals_of") Register<lane_t, bit<12>>(32w2816) contributed_totals_of;
    @name("SereneIngress.contributed.add_total") RegisterAction<lane_t, bit<12>, bit<32>>(contributed_totals_of) contributed_add_total = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + 32w1;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.contributed.add_and_read_snapshot_total") RegisterAction<lane_t, bit<12>, bit<32>>(contributed_totals_of) contributed_add_and_read_snapshot_total = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + 32w1;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.contributed.open_total") RegisterAction<lane_t, bit<12>, bit<32>>(contributed_totals_of) contributed_open_total = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.contributed.store_total") RegisterAction<lane_t, bit<12>, bit<32>>(contributed_totals_of) contributed_store_total = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.serene.total;
        }
    };
    @name("SereneIngress.contributed.do_add_total") action contributed_do_add_total_0() {
        hdr.serene.total = contributed_add_total.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.contributed.do_add_and_read_snapshot_total") action contributed_do_add_and_read_snapshot_total_0() {
        hdr.serene.total = contributed_add_and_read_snapshot_total.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.contributed.do_open_total") action contributed_do_open_total_0() {
        hdr.serene.total = contributed_open_total.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.contributed.do_store_total") action contributed_do_store_total_0() {
        contributed_store_total.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.contributed.update_total") table contributed_update_total {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            contributed_do_add_total_0();
            contributed_do_add_and_read_snapshot_total_0();
            contributed_do_open_total_0();
            contributed_do_store_total_0();
            @defaultonly NoAction_13();
        }
        const default_action = NoAction_13();
        const entries = {
                        lanes_do_t.ADD : contributed_do_add_total_0();
                        lanes_do_t.ADD_READ_SNAPSHOT : contributed_do_add_and_read_snapshot_total_0();
                        lanes_do_t.OPEN : contributed_do_open_total_0();
                        lanes_do_t.STORE : contributed_do_store_total_0();
        }
        size = 4;
    }
    @name("SereneIngress.contributed.contributions") Counter<bit<32>, bit<8>>(32w256, CounterType_t.PACKETS) contributed_contributions;
    @name("SereneIngress.contributed.repeats") Counter<bit<32>, bit<8>>(32w256, CounterType_t.PACKETS) contributed_repeats;
    @name("SereneIngress.contributed.blocked") Counter<bit<32>, bit<8>>(32w256, CounterType_t.PACKETS) contributed_blocked;
    @name("SereneIngress.contributed.staleness") Counter<bit<32>, bit<12>>(32w4096, CounterType_t.PACKETS) contributed_staleness;
    @name("SereneIngress.contributed.dropped_wrong_round") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) contributed_dropped_wrong_round;
    @name("SereneIngress.contributed.dropped_old_session") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) contributed_dropped_old_session;
    @name("SereneIngress.contributed.set_rounds_old") action contributed_set_rounds_old_0(@name("rounds") bit<4> rounds) {
        meta.rounds_old = rounds;
    }
    @name("SereneIngress.contributed.rounds_unread") table contributed_rounds_unread {
        key = {
            meta.job.workers : exact @name("meta.job.workers");
            meta.unread[31:8]: ternary @name("meta.unread[31:8]");
            meta.unread[7:0] : range @name("meta.unread[7:0]");
        }
        actions = {
            contributed_set_rounds_old_0();
        }
        const default_action = contributed_set_rounds_old_0(4w15);
        const entries = {
                        (8w1, 24w0, 8w0) : contributed_set_rounds_old_0(4w0);
                        (8w1, 24w0, 8w1) : contributed_set_rounds_old_0(4w1);
                        (8w1, 24w0, 8w2) : contributed_set_rounds_old_0(4w2);
                        (8w1, 24w0, 8w3) : contributed_set_rounds_old_0(4w3);
                        (8w1, 24w0, 8w4) : contributed_set_rounds_old_0(4w4);
                        (8w1, 24w0, 8w5) : contributed_set_rounds_old_0(4w5);
                        (8w1, 24w0, 8w6) : contributed_set_rounds_old_0(4w6);
                        (8w1, 24w0, 8w7) : contributed_set_rounds_old_0(4w7);
                        (8w1, 24w0, 8w8) : contributed_set_rounds_old_0(4w8);
                        (8w1, 24w0, 8w9) : contributed_set_rounds_old_0(4w9);
                        (8w1, 24w0, 8w10) : contributed_set_rounds_old_0(4w10);
                        (8w1, 24w0, 8w11) : contributed_set_rounds_old_0(4w11);
                        (8w1, 24w0, 8w12) : contributed_set_rounds_old_0(4w12);
                        (8w1, 24w0, 8w13) : contributed_set_rounds_old_0(4w13);
                        (8w1, 24w0, 8w14) : contributed_set_rounds_old_0(4w14);
                        (8w2, 24w0, 8w0 .. 8w1) : contributed_set_rounds_old_0(4w0);
                        (8w2, 24w0, 8w2 .. 8w3) : contributed_set_rounds_old_0(4w1);
                        (8w2, 24w0, 8w4 .. 8w5) : contributed_set_rounds_old_0(4w2);
                        (8w2, 24w0, 8w6 .. 8w7) : contributed_set_rounds_old_0(4w3);
                        (8w2, 24w0, 8w8 .. 8w9) : contributed_set_rounds_old_0(4w4);
                        (8w2, 24w0, 8w10 .. 8w11) : contributed_set_rounds_old_0(4w5);
                        (8w2, 24w0, 8w12 .. 8w13) : contributed_set_rounds_old_0(4w6);
                        (8w2, 24w0, 8w14 .. 8w15) : contributed_set_rounds_old_0(4w7);
                        (8w2, 24w0, 8w16 .. 8w17) : contributed_set_rounds_old_0(4w8);
                        (8w2, 24w0, 8w18 .. 8w19) : contributed_set_rounds_old_0(4w9);
                        (8w2, 24w0, 8w20 .. 8w21) : contributed_set_rounds_old_0(4w10);
                        (8w2, 24w0, 8w22 .. 8w23) : contributed_set_rounds_old_0(4w11);
                        (8w2, 24w0, 8w24 .. 8w25) : contributed_set_rounds_old_0(4w12);
                        (8w2, 24w0, 8w26 .. 8w27) : contributed_set_rounds_old_0(4w13);
                        (8w2, 24w0, 8w28 .. 8w29) : contributed_set_rounds_old_0(4w14);
                        (8w3, 24w0, 8w0 .. 8w2) : contributed_set_rounds_old_0(4w0);
                        (8w3, 24w0, 8w3 .. 8w5) : contributed_set_rounds_old_0(4w1);
                        (8w3, 24w0, 8w6 .. 8w8) : contributed_set_rounds_old_0(4w2);
                        (8w3, 24w0, 8w9 .. 8w11) : contributed_set_rounds_old_0(4w3);
                        (8w3, 24w0, 8w12 .. 8w14) : contributed_set_rounds_old_0(4w4);
                        (8w3, 24w0, 8w15 .. 8w17) : contributed_set_rounds_old_0(4w5);
                        (8w3, 24w0, 8w18 .. 8w20) : contributed_set_rounds_old_0(4w6);
                        (8w3, 24w0, 8w21 .. 8w23) : contributed_set_rounds_old_0(4w7);
                        (8w3, 24w0, 8w24 .. 8w26) : contributed_set_rounds_old_0(4w8);
                        (8w3, 24w0, 8w27 .. 8w29) : contributed_set_rounds_old_0(4w9);
                        (8w3, 24w0, 8w30 .. 8w32) : contributed_set_rounds_old_0(4w10);
                        (8w3, 24w0, 8w33 .. 8w35) : contributed_set_rounds_old_0(4w11);
                        (8w3, 24w0, 8w36 .. 8w38) : contributed_set_rounds_old_0(4w12);
                        (8w3, 24w0, 8w39 .. 8w41) : contributed_set_rounds_old_0(4w13);
                        (8w3, 24w0, 8w42 .. 8w44) : contributed_set_rounds_old_0(4w14);
                        (8w4, 24w0, 8w0 .. 8w3) : contributed_set_rounds_old_0(4w0);
                        (8w4, 24w0, 8w4 .. 8w7) : contributed_set_rounds_old_0(4w1);
                        (8w4, 24w0, 8w8 .. 8w11) : contributed_set_rounds_old_0(4w2);
                        (8w4, 24w0, 8w12 .. 8w15) : contributed_set_rounds_old_0(4w3);
                        (8w4, 24w0, 8w16 .. 8w19) : contributed_set_rounds_old_0(4w4);
                        (8w4, 24w0, 8w20 .. 8w23) : contributed_set_rounds_old_0(4w5);
                        (8w4, 24w0, 8w24 .. 8w27) : contributed_set_rounds_old_0(4w6);
                        (8w4, 24w0, 8w28 .. 8w31) : contributed_set_rounds_old_0(4w7);
                        (8w4, 24w0, 8w32 .. 8w35) : contributed_set_rounds_old_0(4w8);
                        (8w4, 24w0, 8w36 .. 8w39) : contributed_set_rounds_old_0(4w9);
                        (8w4, 24w0, 8w40 .. 8w43) : contributed_set_rounds_old_0(4w10);
                        (8w4, 24w0, 8w44 .. 8w47) : contributed_set_rounds_old_0(4w11);
                        (8w4, 24w0, 8w48 .. 8w51) : contributed_set_rounds_old_0(4w12);
                        (8w4, 24w0, 8w52 .. 8w55) : contributed_set_rounds_old_0(4w13);
                        (8w4, 24w0, 8w56 .. 8w59) : contributed_set_rounds_old_0(4w14);
                        (8w5, 24w0, 8w0 .. 8w4) : contributed_set_rounds_old_0(4w0);
                        (8w5, 24w0, 8w5 .. 8w9) : contributed_set_rounds_old_0(4w1);
                        (8w5, 24w0, 8w10 .. 8w14) : contributed_set_rounds_old_0(4w2);
                        (8w5, 24w0, 8w15 .. 8w19) : contributed_set_rounds_old_0(4w3);
                        (8w5, 24w0, 8w20 .. 8w24) : contributed_set_rounds_old_0(4w4);
                        (8w5, 24w0, 8w25 .. 8w29) : contributed_set_rounds_old_0(4w5);
                        (8w5, 24w0, 8w30 .. 8w34) : contributed_set_rounds_old_0(4w6);
                        (8w5, 24w0, 8w35 .. 8w39) : contributed_set_rounds_old_0(4w7);
                        (8w5, 24w0, 8w40 .. 8w44) : contributed_set_rounds_old_0(4w8);
                        (8w5, 24w0, 8w45 .. 8w49) : contributed_set_rounds_old_0(4w9);
                        (8w5, 24w0, 8w50 .. 8w54) : contributed_set_rounds_old_0(4w10);
                        (8w5, 24w0, 8w55 .. 8w59) : contributed_set_rounds_old_0(4w11);
                        (8w5, 24w0, 8w60 .. 8w64) : contributed_set_rounds_old_0(4w12);
                        (8w5, 24w0, 8w65 .. 8w69) : contributed_set_rounds_old_0(4w13);
                        (8w5, 24w0, 8w70 .. 8w74) : contributed_set_rounds_old_0(4w14);
                        (8w6, 24w0, 8w0 .. 8w5) : contributed_set_rounds_old_0(4w0);
                        (8w6, 24w0, 8w6 .. 8w11) : contributed_set_rounds_old_0(4w1);
                        (8w6, 24w0, 8w12 .. 8w17) : contributed_set_rounds_old_0(4w2);
                        (8w6, 24w0, 8w18 .. 8w23) : contributed_set_rounds_old_0(4w3);
                        (8w6, 24w0, 8w24 .. 8w29) : contributed_set_rounds_old_0(4w4);
                        (8w6, 24w0, 8w30 .. 8w35) : contributed_set_rounds_old_0(4w5);
                        (8w6, 24w0, 8w36 .. 8w41) : contributed_set_rounds_old_0(4w6);
                        (8w6, 24w0, 8w42 .. 8w47) : contributed_set_rounds_old_0(4w7);
                        (8w6, 24w0, 8w48 .. 8w53) : contributed_set_rounds_old_0(4w8);
                        (8w6, 24w0, 8w54 .. 8w59) : contributed_set_rounds_old_0(4w9);
                        (8w6, 24w0, 8w60 .. 8w65) : contributed_set_rounds_old_0(4w10);
                        (8w6, 24w0, 8w66 .. 8w71) : contributed_set_rounds_old_0(4w11);
                        (8w6, 24w0, 8w72 .. 8w77) : contributed_set_rounds_old_0(4w12);
                        (8w6, 24w0, 8w78 .. 8w83) : contributed_set_rounds_old_0(4w13);
                        (8w6, 24w0, 8w84 .. 8w89) : contributed_set_rounds_old_0(4w14);
                        (8w7, 24w0, 8w0 .. 8w6) : contributed_set_rounds_old_0(4w0);
                        (8w7, 24w0, 8w7 .. 8w13) : contributed_set_rounds_old_0(4w1);
                        (8w7, 24w0, 8w14 .. 8w20) : contributed_set_rounds_old_0(4w2);
                        (8w7, 24w0, 8w21 .. 8w27) : contributed_set_rounds_old_0(4w3);
                        (8w7, 24w0, 8w28 .. 8w34) : contributed_set_rounds_old_0(4w4);
                        (8w7, 24w0, 8w35 .. 8w41) : contributed_set_rounds_old_0(4w5);
                        (8w7, 24w0, 8w42 .. 8w48) : contributed_set_rounds_old_0(4w6);
                        (8w7, 24w0, 8w49 .. 8w55) : contributed_set_rounds_old_0(4w7);
                        (8w7, 24w0, 8w56 .. 8w62) : contributed_set_rounds_old_0(4w8);
                        (8w7, 24w0, 8w63 .. 8w69) : contributed_set_rounds_old_0(4w9);
                        (8w7, 24w0, 8w70 .. 8w76) : contributed_set_rounds_old_0(4w10);
                        (8w7, 24w0, 8w77 .. 8w83) : contributed_set_rounds_old_0(4w11);
                        (8w7, 24w0, 8w84 .. 8w90) : contributed_set_rounds_old_0(4w12);
                        (8w7, 24w0, 8w91 .. 8w97) : contributed_set_rounds_old_0(4w13);
                        (8w7, 24w0, 8w98 .. 8w104) : contributed_set_rounds_old_0(4w14);
                        (8w8, 24w0, 8w0 .. 8w7) : contributed_set_rounds_old_0(4w0);
                        (8w8, 24w0, 8w8 .. 8w15) : contributed_set_rounds_old_0(4w1);
                        (8w8, 24w0, 8w16 .. 8w23) : contributed_set_rounds_old_0(4w2);
                        (8w8, 24w0, 8w24 .. 8w31) : contributed_set_rounds_old_0(4w3);
                        (8w8, 24w0, 8w32 .. 8w39) : contributed_set_rounds_old_0(4w4);
                        (8w8, 24w0, 8w40 .. 8w47) : contributed_set_rounds_old_0(4w5);
                        (8w8, 24w0, 8w48 .. 8w55) : contributed_set_rounds_old_0(4w6);
                        (8w8, 24w0, 8w56 .. 8w63) : contributed_set_rounds_old_0(4w7);
                        (8w8, 24w0, 8w64 .. 8w71) : contributed_set_rounds_old_0(4w8);
                        (8w8, 24w0, 8w72 .. 8w79) : contributed_set_rounds_old_0(4w9);
                        (8w8, 24w0, 8w80 .. 8w87) : contributed_set_rounds_old_0(4w10);
                        (8w8, 24w0, 8w88 .. 8w95) : contributed_set_rounds_old_0(4w11);
                        (8w8, 24w0, 8w96 .. 8w103) : contributed_set_rounds_old_0(4w12);
                        (8w8, 24w0, 8w104 .. 8w111) : contributed_set_rounds_old_0(4w13);
                        (8w8, 24w0, 8w112 .. 8w119) : contributed_set_rounds_old_0(4w14);
                        (8w9, 24w0, 8w0 .. 8w8) : contributed_set_rounds_old_0(4w0);
                        (8w9, 24w0, 8w9 .. 8w17) : contributed_set_rounds_old_0(4w1);
                        (8w9, 24w0, 8w18 .. 8w26) : contributed_set_rounds_old_0(4w2);
                        (8w9, 24w0, 8w27 .. 8w35) : contributed_set_rounds_old_0(4w3);
                        (8w9, 24w0, 8w36 .. 8w44) : contributed_set_rounds_old_0(4w4);
                        (8w9, 24w0, 8w45 .. 8w53) : contributed_set_rounds_old_0(4w5);
                        (8w9, 24w0, 8w54 .. 8w62) : contributed_set_rounds_old_0(4w6);
                        (8w9, 24w0, 8w63 .. 8w71) : contributed_set_rounds_old_0(4w7);
                        (8w9, 24w0, 8w72 .. 8w80) : contributed_set_rounds_old_0(4w8);
                        (8w9, 24w0, 8w81 .. 8w89) : contributed_set_rounds_old_0(4w9);
                        (8w9, 24w0, 8w90 .. 8w98) : contributed_set_rounds_old_0(4w10);
                        (8w9, 24w0, 8w99 .. 8w107) : contributed_set_rounds_old_0(4w11);
                        (8w9, 24w0, 8w108 .. 8w116) : contributed_set_rounds_old_0(4w12);
                        (8w9, 24w0, 8w117 .. 8w125) : contributed_set_rounds_old_0(4w13);
                        (8w9, 24w0, 8w126 .. 8w134) : contributed_set_rounds_old_0(4w14);
                        (8w10, 24w0, 8w0 .. 8w9) : contributed_set_rounds_old_0(4w0);
                        (8w10, 24w0, 8w10 .. 8w19) : contributed_set_rounds_old_0(4w1);
                        (8w10, 24w0, 8w20 .. 8w29) : contributed_set_rounds_old_0(4w2);
                        (8w10, 24w0, 8w30 .. 8w39) : contributed_set_rounds_old_0(4w3);
                        (8w10, 24w0, 8w40 .. 8w49) : contributed_set_rounds_old_0(4w4);
                        (8w10, 24w0, 8w50 .. 8w59) : contributed_set_rounds_old_0(4w5);
                        (8w10, 24w0, 8w60 .. 8w69) : contributed_set_rounds_old_0(4w6);
                        (8w10, 24w0, 8w70 .. 8w79) : contributed_set_rounds_old_0(4w7);
                        (8w10, 24w0, 8w80 .. 8w89) : contributed_set_rounds_old_0(4w8);
                        (8w10, 24w0, 8w90 .. 8w99) : contributed_set_rounds_old_0(4w9);
                        (8w10, 24w0, 8w100 .. 8w109) : contributed_set_rounds_old_0(4w10);
                        (8w10, 24w0, 8w110 .. 8w119) : contributed_set_rounds_old_0(4w11);
                        (8w10, 24w0, 8w120 .. 8w129) : contributed_set_rounds_old_0(4w12);
                        (8w10, 24w0, 8w130 .. 8w139) : contributed_set_rounds_old_0(4w13);
                        (8w10, 24w0, 8w140 .. 8w149) : contributed_set_rounds_old_0(4w14);
                        (8w11, 24w0, 8w0 .. 8w10) : contributed_set_rounds_old_0(4w0);
                        (8w11, 24w0, 8w11 .. 8w21) : contributed_set_rounds_old_0(4w1);
                        (8w11, 24w0, 8w22 .. 8w32) : contributed_set_rounds_old_0(4w2);
                        (8w11, 24w0, 8w33 .. 8w43) : contributed_set_rounds_old_0(4w3);
                        (8w11, 24w0, 8w44 .. 8w54) : contributed_set_rounds_old_0(4w4);
                        (8w11, 24w0, 8w55 .. 8w65) : contributed_set_rounds_old_0(4w5);
                        (8w11, 24w0, 8w66 .. 8w76) : contributed_set_rounds_old_0(4w6);
                        (8w11, 24w0, 8w77 .. 8w87) : contributed_set_rounds_old_0(4w7);
                        (8w11, 24w0, 8w88 .. 8w98) : contributed_set_rounds_old_0(4w8);
                        (8w11, 24w0, 8w99 .. 8w109) : contributed_set_rounds_old_0(4w9);
                        (8w11, 24w0, 8w110 .. 8w120) : contributed_set_rounds_old_0(4w10);
                        (8w11, 24w0, 8w121 .. 8w131) : contributed_set_rounds_old_0(4w11);
                        (8w11, 24w0, 8w132 .. 8w142) : contributed_set_rounds_old_0(4w12);
                        (8w11, 24w0, 8w143 .. 8w153) : contributed_set_rounds_old_0(4w13);
                        (8w11, 24w0, 8w154 .. 8w164) : contributed_set_rounds_old_0(4w14);
                        (8w12, 24w0, 8w0 .. 8w11) : contributed_set_rounds_old_0(4w0);
                        (8w12, 24w0, 8w12 .. 8w23) : contributed_set_rounds_old_0(4w1);
                        (8w12, 24w0, 8w24 .. 8w35) : contributed_set_rounds_old_0(4w2);
                        (8w12, 24w0, 8w36 .. 8w47) : contributed_set_rounds_old_0(4w3);
                        (8w12, 24w0, 8w48 .. 8w59) : contributed_set_rounds_old_0(4w4);
                        (8w12, 24w0, 8w60 .. 8w71) : contributed_set_rounds_old_0(4w5);
                        (8w12, 24w0, 8w72 .. 8w83) : contributed_set_rounds_old_0(4w6);
                        (8w12, 24w0, 8w84 .. 8w95) : contributed_set_rounds_old_0(4w7);
                        (8w12, 24w0, 8w96 .. 8w107) : contributed_set_rounds_old_0(4w8);
                        (8w12, 24w0, 8w108 .. 8w119) : contributed_set_rounds_old_0(4w9);
                        (8w12, 24w0, 8w120 .. 8w131) : contributed_set_rounds_old_0(4w10);
                        (8w12, 24w0, 8w132 .. 8w143) : contributed_set_rounds_old_0(4w11);
                        (8w12, 24w0, 8w144 .. 8w155) : contributed_set_rounds_old_0(4w12);
                        (8w12, 24w0, 8w156 .. 8w167) : contributed_set_rounds_old_0(4w13);
                        (8w12, 24w0, 8w168 .. 8w179) : contributed_set_rounds_old_0(4w14);
                        (8w13, 24w0, 8w0 .. 8w12) : contributed_set_rounds_old_0(4w0);
                        (8w13, 24w0, 8w13 .. 8w25) : contributed_set_rounds_old_0(4w1);
                        (8w13, 24w0, 8w26 .. 8w38) : contributed_set_rounds_old_0(4w2);
                        (8w13, 24w0, 8w39 .. 8w51) : contributed_set_rounds_old_0(4w3);
                        (8w13, 24w0, 8w52 .. 8w64) : contributed_set_rounds_old_0(4w4);
                        (8w13, 24w0, 8w65 .. 8w77) : contributed_set_rounds_old_0(4w5);
                        (8w13, 24w0, 8w78 .. 8w90) : contributed_set_rounds_old_0(4w6);
                        (8w13, 24w0, 8w91 .. 8w103) : contributed_set_rounds_old_0(4w7);
                        (8w13, 24w0, 8w104 .. 8w116) : contributed_set_rounds_old_0(4w8);
                        (8w13, 24w0, 8w117 .. 8w129) : contributed_set_rounds_old_0(4w9);
                        (8w13, 24w0, 8w130 .. 8w142) : contributed_set_rounds_old_0(4w10);
                        (8w13, 24w0, 8w143 .. 8w155) : contributed_set_rounds_old_0(4w11);
                        (8w13, 24w0, 8w156 .. 8w168) : contributed_set_rounds_old_0(4w12);
                        (8w13, 24w0, 8w169 .. 8w181) : contributed_set_rounds_old_0(4w13);
                        (8w13, 24w0, 8w182 .. 8w194) : contributed_set_rounds_old_0(4w14);
                        (8w14, 24w0, 8w0 .. 8w13) : contributed_set_rounds_old_0(4w0);
                        (8w14, 24w0, 8w14 .. 8w27) : contributed_set_rounds_old_0(4w1);
                        (8w14, 24w0, 8w28 .. 8w41) : contributed_set_rounds_old_0(4w2);
                        (8w14, 24w0, 8w42 .. 8w55) : contributed_set_rounds_old_0(4w3);
                        (8w14, 24w0, 8w56 .. 8w69) : contributed_set_rounds_old_0(4w4);
                        (8w14, 24w0, 8w70 .. 8w83) : contributed_set_rounds_old_0(4w5);
                        (8w14, 24w0, 8w84 .. 8w97) : contributed_set_rounds_old_0(4w6);
                        (8w14, 24w0, 8w98 .. 8w111) : contributed_set_rounds_old_0(4w7);
                        (8w14, 24w0, 8w112 .. 8w125) : contributed_set_rounds_old_0(4w8);
                        (8w14, 24w0, 8w126 .. 8w139) : contributed_set_rounds_old_0(4w9);
                        (8w14, 24w0, 8w140 .. 8w153) : contributed_set_rounds_old_0(4w10);
                        (8w14, 24w0, 8w154 .. 8w167) : contributed_set_rounds_old_0(4w11);
                        (8w14, 24w0, 8w168 .. 8w181) : contributed_set_rounds_old_0(4w12);
                        (8w14, 24w0, 8w182 .. 8w195) : contributed_set_rounds_old_0(4w13);
                        (8w14, 24w0, 8w196 .. 8w209) : contributed_set_rounds_old_0(4w14);
                        (8w15, 24w0, 8w0 .. 8w14) : contributed_set_rounds_old_0(4w0);
                        (8w15, 24w0, 8w15 .. 8w29) : contributed_set_rounds_old_0(4w1);
                        (8w15, 24w0, 8w30 .. 8w44) : contributed_set_rounds_old_0(4w2);
                        (8w15, 24w0, 8w45 .. 8w59) : contributed_set_rounds_old_0(4w3);
                        (8w15, 24w0, 8w60 .. 8w74) : contributed_set_rounds_old_0(4w4);
                        (8w15, 24w0, 8w75 .. 8w89) : contributed_set_rounds_old_0(4w5);
                        (8w15, 24w0, 8w90 .. 8w104) : contributed_set_rounds_old_0(4w6);
                        (8w15, 24w0, 8w105 .. 8w119) : contributed_set_rounds_old_0(4w7);
                        (8w15, 24w0, 8w120 .. 8w134) : contributed_set_rounds_old_0(4w8);
                        (8w15, 24w0, 8w135 .. 8w149) : contributed_set_rounds_old_0(4w9);
                        (8w15, 24w0, 8w150 .. 8w164) : contributed_set_rounds_old_0(4w10);
                        (8w15, 24w0, 8w165 .. 8w179) : contributed_set_rounds_old_0(4w11);
                        (8w15, 24w0, 8w180 .. 8w194) : contributed_set_rounds_old_0(4w12);
                        (8w15, 24w0, 8w195 .. 8w209) : contributed_set_rounds_old_0(4w13);
                        (8w15, 24w0, 8w210 .. 8w224) : contributed_set_rounds_old_0(4w14);
                        (8w16, 24w0, 8w0 .. 8w15) : contributed_set_rounds_old_0(4w0);
                        (8w16, 24w0, 8w16 .. 8w31) : contributed_set_rounds_old_0(4w1);
                        (8w16, 24w0, 8w32 .. 8w47) : contributed_set_rounds_old_0(4w2);
                        (8w16, 24w0, 8w48 .. 8w63) : contributed_set_rounds_old_0(4w3);
                        (8w16, 24w0, 8w64 .. 8w79) : contributed_set_rounds_old_0(4w4);
                        (8w16, 24w0, 8w80 .. 8w95) : contributed_set_rounds_old_0(4w5);
                        (8w16, 24w0, 8w96 .. 8w111) : contributed_set_rounds_old_0(4w6);
                        (8w16, 24w0, 8w112 .. 8w127) : contributed_set_rounds_old_0(4w7);
                        (8w16, 24w0, 8w128 .. 8w143) : contributed_set_rounds_old_0(4w8);
                        (8w16, 24w0, 8w144 .. 8w159) : contributed_set_rounds_old_0(4w9);
                        (8w16, 24w0, 8w160 .. 8w175) : contributed_set_rounds_old_0(4w10);
                        (8w16, 24w0, 8w176 .. 8w191) : contributed_set_rounds_old_0(4w11);
                        (8w16, 24w0, 8w192 .. 8w207) : contributed_set_rounds_old_0(4w12);
                        (8w16, 24w0, 8w208 .. 8w223) : contributed_set_rounds_old_0(4w13);
                        (8w16, 24w0, 8w224 .. 8w239) : contributed_set_rounds_old_0(4w14);
        }
        size = 512;
    }
    @name("SereneIngress.contributed.staleness_index") Hash<bit<12>>(HashAlgorithm_t.IDENTITY) contributed_staleness_index;
    @name("SereneIngress.contributed.count_staleness") action contributed_count_staleness_0() {
        contributed_index = contributed_staleness_index.get<tuple<bit<3>, bit<5>, bit<4>>>({ hdr.serene.job[2:0], hdr.serene.worker[4:0], meta.rounds_old });
        contributed_staleness.count(contributed_index);
    }
    @name("SereneIngress.contributed.see_fresh") action contributed_see_fresh_0() {
        hdr.serene.seen = hdr.serene.seq;
    }
    @name("SereneIngress.contributed.see_repeat") action contributed_see_repeat_0() {
        hdr.serene.seen = meta.known;
    }
    @name("SereneIngress.contributed.see_nothing_new") action contributed_see_nothing_new_0() {
        hdr.serene.seen = meta.seen;
    }
    @name("SereneIngress.contributed.who") Hash<bit<8>>(HashAlgorithm_t.IDENTITY) contributed_who;
    @name("SereneIngress.contributed.count_fresh") action contributed_count_fresh_0() {
        contributed_index_0 = contributed_who.get<tuple<bit<3>, bit<5>>>({ hdr.serene.job[2:0], hdr.serene.worker[4:0] });
        contributed_contributions.count(contributed_index_0);
    }
    @name("SereneIngress.contributed.count_repeat") action contributed_count_repeat_0() {
        contributed_index_1 = contributed_who.get<tuple<bit<3>, bit<5>>>({ hdr.serene.job[2:0], hdr.serene.worker[4:0] });
        contributed_repeats.count(contributed_index_1);
    }
    @name("SereneIngress.contributed.count_blocked") action contributed_count_blocked_0() {
        contributed_index_2 = contributed_who.get<tuple<bit<3>, bit<5>>>({ hdr.serene.job[2:0], hdr.serene.worker[4:0] });
        contributed_blocked.count(contributed_index_2);
    }
    @name("SereneIngress.contributed.count_wrong_round") action contributed_count_wrong_round_0() {
        contributed_dropped_wrong_round.count(1w0);
    }
    @name("SereneIngress.contributed.count_old_session") action contributed_count_old_session_0() {
        contributed_dropped_old_session.count(1w0);
    }
    @name("SereneIngress.contributed.count_total") action contributed_count_total_0() {
        meta.unread = contributed_count_contribution.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.contributed.keep_total") action contributed_keep_total_0() {
        contributed_keep_or_forget_total.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.contributed.total") table contributed_total {
        key = {
            meta.verdict : ternary @name("meta.verdict");
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            contributed_count_total_0();
            contributed_keep_total_0();
            @defaultonly NoAction_14();
        }
        const default_action = NoAction_14();
        const entries = {
                        (default, lanes_do_t.OPEN) : contributed_keep_total_0();
                        (verdict_t.FREE, default) : contributed_count_total_0();
                        (verdict_t.GO, default) : contributed_count_total_0();
                        (verdict_t.WAIT, default) : contributed_count_total_0();
        }
        size = 4;
    }
    @name("SereneIngress.contributed.say_seen") table contributed_say_seen {
        key = {
            meta.verdict: ternary @name("meta.verdict");
            meta.known  : ternary @name("meta.known");
        }
        actions = {
            contributed_see_fresh_0();
            contributed_see_repeat_0();
            contributed_see_nothing_new_0();
            @defaultonly NoAction_15();
        }
        const default_action = NoAction_15();
        const entries = {
                        (verdict_t.FREE, 32w0) : contributed_see_fresh_0();
                        (verdict_t.GO, 32w0) : contributed_see_fresh_0();
                        (verdict_t.WAIT, 32w0) : contributed_see_fresh_0();
                        (verdict_t.FREE, default) : contributed_see_repeat_0();
                        (verdict_t.GO, default) : contributed_see_repeat_0();
                        (verdict_t.WAIT, default) : contributed_see_repeat_0();
                        (verdict_t.READ, default) : contributed_see_nothing_new_0();
                        (verdict_t.OPENING, default) : contributed_see_nothing_new_0();
        }
        size = 8;
    }
    @name("SereneIngress.aggregation.lanes_of_0") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of;
    @name("SereneIngress.aggregation.add_lane_0") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of) aggregation_add_lane = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_0;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_0") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of) aggregation_add_and_read_snapshot_lane = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_0;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_0") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of) aggregation_open_lane = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_0") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of) aggregation_store_lane = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_0;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_0") action aggregation_do_add_lane_59() {
        hdr.values.lanes_0 = aggregation_add_lane.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_0") action aggregation_do_add_and_read_snapshot_lane_59() {
        hdr.values.lanes_0 = aggregation_add_and_read_snapshot_lane.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_0") action aggregation_do_open_lane_59() {
        hdr.values.lanes_0 = aggregation_open_lane.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_0") action aggregation_do_store_lane_59() {
        aggregation_store_lane.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_0") table aggregation_update_lane {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_59();
            aggregation_do_add_and_read_snapshot_lane_59();
            aggregation_do_open_lane_59();
            aggregation_do_store_lane_59();
            @defaultonly NoAction_16();
        }
        const default_action = NoAction_16();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_59();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_59();
                        lanes_do_t.OPEN : aggregation_do_open_lane_59();
                        lanes_do_t.STORE : aggregation_do_store_lane_59();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_1") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_0;
    @name("SereneIngress.aggregation.add_lane_1") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_0) aggregation_add_lane_0 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_1;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_1") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_0) aggregation_add_and_read_snapshot_lane_0 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_1;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_1") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_0) aggregation_open_lane_0 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_1") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_0) aggregation_store_lane_0 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_1;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_1") action aggregation_do_add_lane_60() {
        hdr.values.lanes_1 = aggregation_add_lane_0.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_1") action aggregation_do_add_and_read_snapshot_lane_60() {
        hdr.values.lanes_1 = aggregation_add_and_read_snapshot_lane_0.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_1") action aggregation_do_open_lane_60() {
        hdr.values.lanes_1 = aggregation_open_lane_0.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_1") action aggregation_do_store_lane_60() {
        aggregation_store_lane_0.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_1") table aggregation_update_lane_0 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_60();
            aggregation_do_add_and_read_snapshot_lane_60();
            aggregation_do_open_lane_60();
            aggregation_do_store_lane_60();
            @defaultonly NoAction_17();
        }
        const default_action = NoAction_17();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_60();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_60();
                        lanes_do_t.OPEN : aggregation_do_open_lane_60();
                        lanes_do_t.STORE : aggregation_do_store_lane_60();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_2") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_1;
    @name("SereneIngress.aggregation.add_lane_2") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_1) aggregation_add_lane_1 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_2;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_2") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_1) aggregation_add_and_read_snapshot_lane_1 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_2;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_2") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_1) aggregation_open_lane_1 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_2") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_1) aggregation_store_lane_1 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_2;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_2") action aggregation_do_add_lane_61() {
        hdr.values.lanes_2 = aggregation_add_lane_1.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_2") action aggregation_do_add_and_read_snapshot_lane_61() {
        hdr.values.lanes_2 = aggregation_add_and_read_snapshot_lane_1.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_2") action aggregation_do_open_lane_61() {
        hdr.values.lanes_2 = aggregation_open_lane_1.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_2") action aggregation_do_store_lane_61() {
        aggregation_store_lane_1.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_2") table aggregation_update_lane_1 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_61();
            aggregation_do_add_and_read_snapshot_lane_61();
            aggregation_do_open_lane_61();
            aggregation_do_store_lane_61();
            @defaultonly NoAction_18();
        }
        const default_action = NoAction_18();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_61();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_61();
                        lanes_do_t.OPEN : aggregation_do_open_lane_61();
                        lanes_do_t.STORE : aggregation_do_store_lane_61();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_3") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_2;
    @name("SereneIngress.aggregation.add_lane_3") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_2) aggregation_add_lane_2 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_3;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_3") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_2) aggregation_add_and_read_snapshot_lane_2 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_3;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_3") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_2) aggregation_open_lane_2 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_3") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_2) aggregation_store_lane_2 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_3;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_3") action aggregation_do_add_lane_62() {
        hdr.values.lanes_3 = aggregation_add_lane_2.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_3") action aggregation_do_add_and_read_snapshot_lane_62() {
        hdr.values.lanes_3 = aggregation_add_and_read_snapshot_lane_2.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_3") action aggregation_do_open_lane_62() {
        hdr.values.lanes_3 = aggregation_open_lane_2.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_3") action aggregation_do_store_lane_62() {
        aggregation_store_lane_2.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_3") table aggregation_update_lane_2 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_62();
            aggregation_do_add_and_read_snapshot_lane_62();
            aggregation_do_open_lane_62();
            aggregation_do_store_lane_62();
            @defaultonly NoAction_19();
        }
        const default_action = NoAction_19();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_62();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_62();
                        lanes_do_t.OPEN : aggregation_do_open_lane_62();
                        lanes_do_t.STORE : aggregation_do_store_lane_62();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_4") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_3;
    @name("SereneIngress.aggregation.add_lane_4") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_3) aggregation_add_lane_3 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_4;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_4") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_3) aggregation_add_and_read_snapshot_lane_3 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_4;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_4") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_3) aggregation_open_lane_3 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_4") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_3) aggregation_store_lane_3 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_4;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_4") action aggregation_do_add_lane_63() {
        hdr.values.lanes_4 = aggregation_add_lane_3.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_4") action aggregation_do_add_and_read_snapshot_lane_63() {
        hdr.values.lanes_4 = aggregation_add_and_read_snapshot_lane_3.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_4") action aggregation_do_open_lane_63() {
        hdr.values.lanes_4 = aggregation_open_lane_3.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_4") action aggregation_do_store_lane_63() {
        aggregation_store_lane_3.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_4") table aggregation_update_lane_3 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_63();
            aggregation_do_add_and_read_snapshot_lane_63();
            aggregation_do_open_lane_63();
            aggregation_do_store_lane_63();
            @defaultonly NoAction_20();
        }
        const default_action = NoAction_20();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_63();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_63();
                        lanes_do_t.OPEN : aggregation_do_open_lane_63();
                        lanes_do_t.STORE : aggregation_do_store_lane_63();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_5") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_4;
    @name("SereneIngress.aggregation.add_lane_5") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_4) aggregation_add_lane_4 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_5;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_5") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_4) aggregation_add_and_read_snapshot_lane_4 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_5;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_5") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_4) aggregation_open_lane_4 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_5") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_4) aggregation_store_lane_4 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_5;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_5") action aggregation_do_add_lane_64() {
        hdr.values.lanes_5 = aggregation_add_lane_4.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_5") action aggregation_do_add_and_read_snapshot_lane_64() {
        hdr.values.lanes_5 = aggregation_add_and_read_snapshot_lane_4.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_5") action aggregation_do_open_lane_64() {
        hdr.values.lanes_5 = aggregation_open_lane_4.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_5") action aggregation_do_store_lane_64() {
        aggregation_store_lane_4.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_5") table aggregation_update_lane_4 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_64();
            aggregation_do_add_and_read_snapshot_lane_64();
            aggregation_do_open_lane_64();
            aggregation_do_store_lane_64();
            @defaultonly NoAction_21();
        }
        const default_action = NoAction_21();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_64();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_64();
                        lanes_do_t.OPEN : aggregation_do_open_lane_64();
                        lanes_do_t.STORE : aggregation_do_store_lane_64();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_6") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_5;
    @name("SereneIngress.aggregation.add_lane_6") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_5) aggregation_add_lane_5 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_6;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_6") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_5) aggregation_add_and_read_snapshot_lane_5 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_6;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_6") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_5) aggregation_open_lane_5 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_6") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_5) aggregation_store_lane_5 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_6;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_6") action aggregation_do_add_lane_65() {
        hdr.values.lanes_6 = aggregation_add_lane_5.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_6") action aggregation_do_add_and_read_snapshot_lane_65() {
        hdr.values.lanes_6 = aggregation_add_and_read_snapshot_lane_5.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_6") action aggregation_do_open_lane_65() {
        hdr.values.lanes_6 = aggregation_open_lane_5.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_6") action aggregation_do_store_lane_65() {
        aggregation_store_lane_5.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_6") table aggregation_update_lane_5 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_65();
            aggregation_do_add_and_read_snapshot_lane_65();
            aggregation_do_open_lane_65();
            aggregation_do_store_lane_65();
            @defaultonly NoAction_22();
        }
        const default_action = NoAction_22();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_65();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_65();
                        lanes_do_t.OPEN : aggregation_do_open_lane_65();
                        lanes_do_t.STORE : aggregation_do_store_lane_65();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_7") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_6;
    @name("SereneIngress.aggregation.add_lane_7") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_6) aggregation_add_lane_6 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_7;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_7") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_6) aggregation_add_and_read_snapshot_lane_6 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_7;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_7") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_6) aggregation_open_lane_6 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_7") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_6) aggregation_store_lane_6 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_7;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_7") action aggregation_do_add_lane_66() {
        hdr.values.lanes_7 = aggregation_add_lane_6.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_7") action aggregation_do_add_and_read_snapshot_lane_66() {
        hdr.values.lanes_7 = aggregation_add_and_read_snapshot_lane_6.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_7") action aggregation_do_open_lane_66() {
        hdr.values.lanes_7 = aggregation_open_lane_6.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_7") action aggregation_do_store_lane_66() {
        aggregation_store_lane_6.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_7") table aggregation_update_lane_6 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_66();
            aggregation_do_add_and_read_snapshot_lane_66();
            aggregation_do_open_lane_66();
            aggregation_do_store_lane_66();
            @defaultonly NoAction_23();
        }
        const default_action = NoAction_23();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_66();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_66();
                        lanes_do_t.OPEN : aggregation_do_open_lane_66();
                        lanes_do_t.STORE : aggregation_do_store_lane_66();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_8") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_7;
    @name("SereneIngress.aggregation.add_lane_8") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_7) aggregation_add_lane_7 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_8;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_8") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_7) aggregation_add_and_read_snapshot_lane_7 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_8;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_8") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_7) aggregation_open_lane_7 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_8") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_7) aggregation_store_lane_7 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_8;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_8") action aggregation_do_add_lane_67() {
        hdr.values.lanes_8 = aggregation_add_lane_7.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_8") action aggregation_do_add_and_read_snapshot_lane_67() {
        hdr.values.lanes_8 = aggregation_add_and_read_snapshot_lane_7.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_8") action aggregation_do_open_lane_67() {
        hdr.values.lanes_8 = aggregation_open_lane_7.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_8") action aggregation_do_store_lane_67() {
        aggregation_store_lane_7.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_8") table aggregation_update_lane_7 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_67();
            aggregation_do_add_and_read_snapshot_lane_67();
            aggregation_do_open_lane_67();
            aggregation_do_store_lane_67();
            @defaultonly NoAction_24();
        }
        const default_action = NoAction_24();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_67();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_67();
                        lanes_do_t.OPEN : aggregation_do_open_lane_67();
                        lanes_do_t.STORE : aggregation_do_store_lane_67();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_9") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_8;
    @name("SereneIngress.aggregation.add_lane_9") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_8) aggregation_add_lane_8 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_9;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_9") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_8) aggregation_add_and_read_snapshot_lane_8 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_9;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_9") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_8) aggregation_open_lane_8 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_9") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_8) aggregation_store_lane_8 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_9;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_9") action aggregation_do_add_lane_68() {
        hdr.values.lanes_9 = aggregation_add_lane_8.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_9") action aggregation_do_add_and_read_snapshot_lane_68() {
        hdr.values.lanes_9 = aggregation_add_and_read_snapshot_lane_8.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_9") action aggregation_do_open_lane_68() {
        hdr.values.lanes_9 = aggregation_open_lane_8.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_9") action aggregation_do_store_lane_68() {
        aggregation_store_lane_8.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_9") table aggregation_update_lane_8 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_68();
            aggregation_do_add_and_read_snapshot_lane_68();
            aggregation_do_open_lane_68();
            aggregation_do_store_lane_68();
            @defaultonly NoAction_25();
        }
        const default_action = NoAction_25();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_68();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_68();
                        lanes_do_t.OPEN : aggregation_do_open_lane_68();
                        lanes_do_t.STORE : aggregation_do_store_lane_68();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_10") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_9;
    @name("SereneIngress.aggregation.add_lane_10") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_9) aggregation_add_lane_9 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_10;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_10") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_9) aggregation_add_and_read_snapshot_lane_9 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_10;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_10") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_9) aggregation_open_lane_9 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_10") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_9) aggregation_store_lane_9 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_10;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_10") action aggregation_do_add_lane_69() {
        hdr.values.lanes_10 = aggregation_add_lane_9.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_10") action aggregation_do_add_and_read_snapshot_lane_69() {
        hdr.values.lanes_10 = aggregation_add_and_read_snapshot_lane_9.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_10") action aggregation_do_open_lane_69() {
        hdr.values.lanes_10 = aggregation_open_lane_9.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_10") action aggregation_do_store_lane_69() {
        aggregation_store_lane_9.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_10") table aggregation_update_lane_9 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_69();
            aggregation_do_add_and_read_snapshot_lane_69();
            aggregation_do_open_lane_69();
            aggregation_do_store_lane_69();
            @defaultonly NoAction_26();
        }
        const default_action = NoAction_26();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_69();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_69();
                        lanes_do_t.OPEN : aggregation_do_open_lane_69();
                        lanes_do_t.STORE : aggregation_do_store_lane_69();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_11") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_10;
    @name("SereneIngress.aggregation.add_lane_11") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_10) aggregation_add_lane_10 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_11;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_11") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_10) aggregation_add_and_read_snapshot_lane_10 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_11;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_11") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_10) aggregation_open_lane_10 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_11") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_10) aggregation_store_lane_10 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_11;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_11") action aggregation_do_add_lane_70() {
        hdr.values.lanes_11 = aggregation_add_lane_10.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_11") action aggregation_do_add_and_read_snapshot_lane_70() {
        hdr.values.lanes_11 = aggregation_add_and_read_snapshot_lane_10.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_11") action aggregation_do_open_lane_70() {
        hdr.values.lanes_11 = aggregation_open_lane_10.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_11") action aggregation_do_store_lane_70() {
        aggregation_store_lane_10.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_11") table aggregation_update_lane_10 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_70();
            aggregation_do_add_and_read_snapshot_lane_70();
            aggregation_do_open_lane_70();
            aggregation_do_store_lane_70();
            @defaultonly NoAction_27();
        }
        const default_action = NoAction_27();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_70();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_70();
                        lanes_do_t.OPEN : aggregation_do_open_lane_70();
                        lanes_do_t.STORE : aggregation_do_store_lane_70();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_12") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_11;
    @name("SereneIngress.aggregation.add_lane_12") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_11) aggregation_add_lane_11 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_12;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_12") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_11) aggregation_add_and_read_snapshot_lane_11 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_12;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_12") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_11) aggregation_open_lane_11 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_12") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_11) aggregation_store_lane_11 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_12;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_12") action aggregation_do_add_lane_71() {
        hdr.values.lanes_12 = aggregation_add_lane_11.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_12") action aggregation_do_add_and_read_snapshot_lane_71() {
        hdr.values.lanes_12 = aggregation_add_and_read_snapshot_lane_11.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_12") action aggregation_do_open_lane_71() {
        hdr.values.lanes_12 = aggregation_open_lane_11.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_12") action aggregation_do_store_lane_71() {
        aggregation_store_lane_11.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_12") table aggregation_update_lane_11 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_71();
            aggregation_do_add_and_read_snapshot_lane_71();
            aggregation_do_open_lane_71();
            aggregation_do_store_lane_71();
            @defaultonly NoAction_28();
        }
        const default_action = NoAction_28();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_71();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_71();
                        lanes_do_t.OPEN : aggregation_do_open_lane_71();
                        lanes_do_t.STORE : aggregation_do_store_lane_71();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_13") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_12;
    @name("SereneIngress.aggregation.add_lane_13") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_12) aggregation_add_lane_12 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_13;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_13") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_12) aggregation_add_and_read_snapshot_lane_12 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_13;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_13") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_12) aggregation_open_lane_12 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_13") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_12) aggregation_store_lane_12 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_13;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_13") action aggregation_do_add_lane_72() {
        hdr.values.lanes_13 = aggregation_add_lane_12.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_13") action aggregation_do_add_and_read_snapshot_lane_72() {
        hdr.values.lanes_13 = aggregation_add_and_read_snapshot_lane_12.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_13") action aggregation_do_open_lane_72() {
        hdr.values.lanes_13 = aggregation_open_lane_12.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_13") action aggregation_do_store_lane_72() {
        aggregation_store_lane_12.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_13") table aggregation_update_lane_12 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_72();
            aggregation_do_add_and_read_snapshot_lane_72();
            aggregation_do_open_lane_72();
            aggregation_do_store_lane_72();
            @defaultonly NoAction_29();
        }
        const default_action = NoAction_29();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_72();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_72();
                        lanes_do_t.OPEN : aggregation_do_open_lane_72();
                        lanes_do_t.STORE : aggregation_do_store_lane_72();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_14") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_13;
    @name("SereneIngress.aggregation.add_lane_14") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_13) aggregation_add_lane_13 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_14;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_14") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_13) aggregation_add_and_read_snapshot_lane_13 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_14;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_14") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_13) aggregation_open_lane_13 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_14") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_13) aggregation_store_lane_13 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_14;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_14") action aggregation_do_add_lane_73() {
        hdr.values.lanes_14 = aggregation_add_lane_13.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_14") action aggregation_do_add_and_read_snapshot_lane_73() {
        hdr.values.lanes_14 = aggregation_add_and_read_snapshot_lane_13.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_14") action aggregation_do_open_lane_73() {
        hdr.values.lanes_14 = aggregation_open_lane_13.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_14") action aggregation_do_store_lane_73() {
        aggregation_store_lane_13.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_14") table aggregation_update_lane_13 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_73();
            aggregation_do_add_and_read_snapshot_lane_73();
            aggregation_do_open_lane_73();
            aggregation_do_store_lane_73();
            @defaultonly NoAction_30();
        }
        const default_action = NoAction_30();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_73();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_73();
                        lanes_do_t.OPEN : aggregation_do_open_lane_73();
                        lanes_do_t.STORE : aggregation_do_store_lane_73();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_15") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_14;
    @name("SereneIngress.aggregation.add_lane_15") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_14) aggregation_add_lane_14 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_15;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_15") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_14) aggregation_add_and_read_snapshot_lane_14 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_15;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_15") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_14) aggregation_open_lane_14 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_15") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_14) aggregation_store_lane_14 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_15;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_15") action aggregation_do_add_lane_74() {
        hdr.values.lanes_15 = aggregation_add_lane_14.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_15") action aggregation_do_add_and_read_snapshot_lane_74() {
        hdr.values.lanes_15 = aggregation_add_and_read_snapshot_lane_14.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_15") action aggregation_do_open_lane_74() {
        hdr.values.lanes_15 = aggregation_open_lane_14.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_15") action aggregation_do_store_lane_74() {
        aggregation_store_lane_14.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_15") table aggregation_update_lane_14 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_74();
            aggregation_do_add_and_read_snapshot_lane_74();
            aggregation_do_open_lane_74();
            aggregation_do_store_lane_74();
            @defaultonly NoAction_31();
        }
        const default_action = NoAction_31();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_74();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_74();
                        lanes_do_t.OPEN : aggregation_do_open_lane_74();
                        lanes_do_t.STORE : aggregation_do_store_lane_74();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_16") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_15;
    @name("SereneIngress.aggregation.add_lane_16") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_15) aggregation_add_lane_15 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_16;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_16") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_15) aggregation_add_and_read_snapshot_lane_15 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_16;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_16") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_15) aggregation_open_lane_15 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_16") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_15) aggregation_store_lane_15 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_16;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_16") action aggregation_do_add_lane_75() {
        hdr.values.lanes_16 = aggregation_add_lane_15.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_16") action aggregation_do_add_and_read_snapshot_lane_75() {
        hdr.values.lanes_16 = aggregation_add_and_read_snapshot_lane_15.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_16") action aggregation_do_open_lane_75() {
        hdr.values.lanes_16 = aggregation_open_lane_15.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_16") action aggregation_do_store_lane_75() {
        aggregation_store_lane_15.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_16") table aggregation_update_lane_15 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_75();
            aggregation_do_add_and_read_snapshot_lane_75();
            aggregation_do_open_lane_75();
            aggregation_do_store_lane_75();
            @defaultonly NoAction_32();
        }
        const default_action = NoAction_32();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_75();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_75();
                        lanes_do_t.OPEN : aggregation_do_open_lane_75();
                        lanes_do_t.STORE : aggregation_do_store_lane_75();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_17") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_16;
    @name("SereneIngress.aggregation.add_lane_17") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_16) aggregation_add_lane_16 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_17;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_17") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_16) aggregation_add_and_read_snapshot_lane_16 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_17;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_17") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_16) aggregation_open_lane_16 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_17") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_16) aggregation_store_lane_16 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_17;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_17") action aggregation_do_add_lane_76() {
        hdr.values.lanes_17 = aggregation_add_lane_16.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_17") action aggregation_do_add_and_read_snapshot_lane_76() {
        hdr.values.lanes_17 = aggregation_add_and_read_snapshot_lane_16.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_17") action aggregation_do_open_lane_76() {
        hdr.values.lanes_17 = aggregation_open_lane_16.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_17") action aggregation_do_store_lane_76() {
        aggregation_store_lane_16.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_17") table aggregation_update_lane_16 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_76();
            aggregation_do_add_and_read_snapshot_lane_76();
            aggregation_do_open_lane_76();
            aggregation_do_store_lane_76();
            @defaultonly NoAction_33();
        }
        const default_action = NoAction_33();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_76();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_76();
                        lanes_do_t.OPEN : aggregation_do_open_lane_76();
                        lanes_do_t.STORE : aggregation_do_store_lane_76();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_18") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_17;
    @name("SereneIngress.aggregation.add_lane_18") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_17) aggregation_add_lane_17 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_18;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_18") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_17) aggregation_add_and_read_snapshot_lane_17 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_18;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_18") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_17) aggregation_open_lane_17 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_18") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_17) aggregation_store_lane_17 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_18;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_18") action aggregation_do_add_lane_77() {
        hdr.values.lanes_18 = aggregation_add_lane_17.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_18") action aggregation_do_add_and_read_snapshot_lane_77() {
        hdr.values.lanes_18 = aggregation_add_and_read_snapshot_lane_17.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_18") action aggregation_do_open_lane_77() {
        hdr.values.lanes_18 = aggregation_open_lane_17.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_18") action aggregation_do_store_lane_77() {
        aggregation_store_lane_17.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_18") table aggregation_update_lane_17 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_77();
            aggregation_do_add_and_read_snapshot_lane_77();
            aggregation_do_open_lane_77();
            aggregation_do_store_lane_77();
            @defaultonly NoAction_34();
        }
        const default_action = NoAction_34();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_77();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_77();
                        lanes_do_t.OPEN : aggregation_do_open_lane_77();
                        lanes_do_t.STORE : aggregation_do_store_lane_77();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_19") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_18;
    @name("SereneIngress.aggregation.add_lane_19") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_18) aggregation_add_lane_18 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_19;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_19") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_18) aggregation_add_and_read_snapshot_lane_18 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_19;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_19") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_18) aggregation_open_lane_18 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_19") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_18) aggregation_store_lane_18 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_19;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_19") action aggregation_do_add_lane_78() {
        hdr.values.lanes_19 = aggregation_add_lane_18.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_19") action aggregation_do_add_and_read_snapshot_lane_78() {
        hdr.values.lanes_19 = aggregation_add_and_read_snapshot_lane_18.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_19") action aggregation_do_open_lane_78() {
        hdr.values.lanes_19 = aggregation_open_lane_18.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_19") action aggregation_do_store_lane_78() {
        aggregation_store_lane_18.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_19") table aggregation_update_lane_18 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_78();
            aggregation_do_add_and_read_snapshot_lane_78();
            aggregation_do_open_lane_78();
            aggregation_do_store_lane_78();
            @defaultonly NoAction_35();
        }
        const default_action = NoAction_35();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_78();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_78();
                        lanes_do_t.OPEN : aggregation_do_open_lane_78();
                        lanes_do_t.STORE : aggregation_do_store_lane_78();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_20") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_19;
    @name("SereneIngress.aggregation.add_lane_20") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_19) aggregation_add_lane_19 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_20;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_20") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_19) aggregation_add_and_read_snapshot_lane_19 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_20;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_20") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_19) aggregation_open_lane_19 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_20") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_19) aggregation_store_lane_19 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_20;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_20") action aggregation_do_add_lane_79() {
        hdr.values.lanes_20 = aggregation_add_lane_19.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_20") action aggregation_do_add_and_read_snapshot_lane_79() {
        hdr.values.lanes_20 = aggregation_add_and_read_snapshot_lane_19.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_20") action aggregation_do_open_lane_79() {
        hdr.values.lanes_20 = aggregation_open_lane_19.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_20") action aggregation_do_store_lane_79() {
        aggregation_store_lane_19.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_20") table aggregation_update_lane_19 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_79();
            aggregation_do_add_and_read_snapshot_lane_79();
            aggregation_do_open_lane_79();
            aggregation_do_store_lane_79();
            @defaultonly NoAction_36();
        }
        const default_action = NoAction_36();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_79();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_79();
                        lanes_do_t.OPEN : aggregation_do_open_lane_79();
                        lanes_do_t.STORE : aggregation_do_store_lane_79();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_21") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_20;
    @name("SereneIngress.aggregation.add_lane_21") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_20) aggregation_add_lane_20 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_21;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_21") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_20) aggregation_add_and_read_snapshot_lane_20 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_21;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_21") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_20) aggregation_open_lane_20 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_21") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_20) aggregation_store_lane_20 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_21;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_21") action aggregation_do_add_lane_80() {
        hdr.values.lanes_21 = aggregation_add_lane_20.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_21") action aggregation_do_add_and_read_snapshot_lane_80() {
        hdr.values.lanes_21 = aggregation_add_and_read_snapshot_lane_20.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_21") action aggregation_do_open_lane_80() {
        hdr.values.lanes_21 = aggregation_open_lane_20.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_21") action aggregation_do_store_lane_80() {
        aggregation_store_lane_20.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_21") table aggregation_update_lane_20 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_80();
            aggregation_do_add_and_read_snapshot_lane_80();
            aggregation_do_open_lane_80();
            aggregation_do_store_lane_80();
            @defaultonly NoAction_37();
        }
        const default_action = NoAction_37();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_80();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_80();
                        lanes_do_t.OPEN : aggregation_do_open_lane_80();
                        lanes_do_t.STORE : aggregation_do_store_lane_80();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_22") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_21;
    @name("SereneIngress.aggregation.add_lane_22") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_21) aggregation_add_lane_21 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_22;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_22") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_21) aggregation_add_and_read_snapshot_lane_21 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_22;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_22") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_21) aggregation_open_lane_21 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_22") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_21) aggregation_store_lane_21 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_22;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_22") action aggregation_do_add_lane_81() {
        hdr.values.lanes_22 = aggregation_add_lane_21.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_22") action aggregation_do_add_and_read_snapshot_lane_81() {
        hdr.values.lanes_22 = aggregation_add_and_read_snapshot_lane_21.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_22") action aggregation_do_open_lane_81() {
        hdr.values.lanes_22 = aggregation_open_lane_21.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_22") action aggregation_do_store_lane_81() {
        aggregation_store_lane_21.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_22") table aggregation_update_lane_21 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_81();
            aggregation_do_add_and_read_snapshot_lane_81();
            aggregation_do_open_lane_81();
            aggregation_do_store_lane_81();
            @defaultonly NoAction_38();
        }
        const default_action = NoAction_38();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_81();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_81();
                        lanes_do_t.OPEN : aggregation_do_open_lane_81();
                        lanes_do_t.STORE : aggregation_do_store_lane_81();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_23") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_22;
    @name("SereneIngress.aggregation.add_lane_23") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_22) aggregation_add_lane_22 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_23;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_23") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_22) aggregation_add_and_read_snapshot_lane_22 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_23;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_23") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_22) aggregation_open_lane_22 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_23") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_22) aggregation_store_lane_22 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_23;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_23") action aggregation_do_add_lane_82() {
        hdr.values.lanes_23 = aggregation_add_lane_22.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_23") action aggregation_do_add_and_read_snapshot_lane_82() {
        hdr.values.lanes_23 = aggregation_add_and_read_snapshot_lane_22.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_23") action aggregation_do_open_lane_82() {
        hdr.values.lanes_23 = aggregation_open_lane_22.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_23") action aggregation_do_store_lane_82() {
        aggregation_store_lane_22.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_23") table aggregation_update_lane_22 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_82();
            aggregation_do_add_and_read_snapshot_lane_82();
            aggregation_do_open_lane_82();
            aggregation_do_store_lane_82();
            @defaultonly NoAction_39();
        }
        const default_action = NoAction_39();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_82();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_82();
                        lanes_do_t.OPEN : aggregation_do_open_lane_82();
                        lanes_do_t.STORE : aggregation_do_store_lane_82();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_24") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_23;
    @name("SereneIngress.aggregation.add_lane_24") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_23) aggregation_add_lane_23 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_24;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_24") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_23) aggregation_add_and_read_snapshot_lane_23 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_24;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_24") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_23) aggregation_open_lane_23 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_24") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_23) aggregation_store_lane_23 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_24;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_24") action aggregation_do_add_lane_83() {
        hdr.values.lanes_24 = aggregation_add_lane_23.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_24") action aggregation_do_add_and_read_snapshot_lane_83() {
        hdr.values.lanes_24 = aggregation_add_and_read_snapshot_lane_23.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_24") action aggregation_do_open_lane_83() {
        hdr.values.lanes_24 = aggregation_open_lane_23.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_24") action aggregation_do_store_lane_83() {
        aggregation_store_lane_23.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_24") table aggregation_update_lane_23 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_83();
            aggregation_do_add_and_read_snapshot_lane_83();
            aggregation_do_open_lane_83();
            aggregation_do_store_lane_83();
            @defaultonly NoAction_40();
        }
        const default_action = NoAction_40();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_83();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_83();
                        lanes_do_t.OPEN : aggregation_do_open_lane_83();
                        lanes_do_t.STORE : aggregation_do_store_lane_83();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_25") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_24;
    @name("SereneIngress.aggregation.add_lane_25") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_24) aggregation_add_lane_24 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_25;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_25") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_24) aggregation_add_and_read_snapshot_lane_24 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_25;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_25") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_24) aggregation_open_lane_24 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_25") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_24) aggregation_store_lane_24 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_25;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_25") action aggregation_do_add_lane_84() {
        hdr.values.lanes_25 = aggregation_add_lane_24.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_25") action aggregation_do_add_and_read_snapshot_lane_84() {
        hdr.values.lanes_25 = aggregation_add_and_read_snapshot_lane_24.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_25") action aggregation_do_open_lane_84() {
        hdr.values.lanes_25 = aggregation_open_lane_24.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_25") action aggregation_do_store_lane_84() {
        aggregation_store_lane_24.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_25") table aggregation_update_lane_24 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_84();
            aggregation_do_add_and_read_snapshot_lane_84();
            aggregation_do_open_lane_84();
            aggregation_do_store_lane_84();
            @defaultonly NoAction_41();
        }
        const default_action = NoAction_41();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_84();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_84();
                        lanes_do_t.OPEN : aggregation_do_open_lane_84();
                        lanes_do_t.STORE : aggregation_do_store_lane_84();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_26") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_25;
    @name("SereneIngress.aggregation.add_lane_26") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_25) aggregation_add_lane_25 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_26;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_26") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_25) aggregation_add_and_read_snapshot_lane_25 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_26;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_26") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_25) aggregation_open_lane_25 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_26") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_25) aggregation_store_lane_25 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_26;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_26") action aggregation_do_add_lane_85() {
        hdr.values.lanes_26 = aggregation_add_lane_25.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_26") action aggregation_do_add_and_read_snapshot_lane_85() {
        hdr.values.lanes_26 = aggregation_add_and_read_snapshot_lane_25.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_26") action aggregation_do_open_lane_85() {
        hdr.values.lanes_26 = aggregation_open_lane_25.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_26") action aggregation_do_store_lane_85() {
        aggregation_store_lane_25.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_26") table aggregation_update_lane_25 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_85();
            aggregation_do_add_and_read_snapshot_lane_85();
            aggregation_do_open_lane_85();
            aggregation_do_store_lane_85();
            @defaultonly NoAction_42();
        }
        const default_action = NoAction_42();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_85();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_85();
                        lanes_do_t.OPEN : aggregation_do_open_lane_85();
                        lanes_do_t.STORE : aggregation_do_store_lane_85();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_27") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_26;
    @name("SereneIngress.aggregation.add_lane_27") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_26) aggregation_add_lane_26 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_27;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_27") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_26) aggregation_add_and_read_snapshot_lane_26 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_27;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_27") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_26) aggregation_open_lane_26 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_27") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_26) aggregation_store_lane_26 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_27;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_27") action aggregation_do_add_lane_86() {
        hdr.values.lanes_27 = aggregation_add_lane_26.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_27") action aggregation_do_add_and_read_snapshot_lane_86() {
        hdr.values.lanes_27 = aggregation_add_and_read_snapshot_lane_26.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_27") action aggregation_do_open_lane_86() {
        hdr.values.lanes_27 = aggregation_open_lane_26.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_27") action aggregation_do_store_lane_86() {
        aggregation_store_lane_26.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_27") table aggregation_update_lane_26 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_86();
            aggregation_do_add_and_read_snapshot_lane_86();
            aggregation_do_open_lane_86();
            aggregation_do_store_lane_86();
            @defaultonly NoAction_43();
        }
        const default_action = NoAction_43();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_86();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_86();
                        lanes_do_t.OPEN : aggregation_do_open_lane_86();
                        lanes_do_t.STORE : aggregation_do_store_lane_86();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_28") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_27;
    @name("SereneIngress.aggregation.add_lane_28") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_27) aggregation_add_lane_27 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_28;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_28") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_27) aggregation_add_and_read_snapshot_lane_27 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_28;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_28") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_27) aggregation_open_lane_27 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_28") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_27) aggregation_store_lane_27 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_28;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_28") action aggregation_do_add_lane_87() {
        hdr.values.lanes_28 = aggregation_add_lane_27.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_28") action aggregation_do_add_and_read_snapshot_lane_87() {
        hdr.values.lanes_28 = aggregation_add_and_read_snapshot_lane_27.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_28") action aggregation_do_open_lane_87() {
        hdr.values.lanes_28 = aggregation_open_lane_27.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_28") action aggregation_do_store_lane_87() {
        aggregation_store_lane_27.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_28") table aggregation_update_lane_27 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_87();
            aggregation_do_add_and_read_snapshot_lane_87();
            aggregation_do_open_lane_87();
            aggregation_do_store_lane_87();
            @defaultonly NoAction_44();
        }
        const default_action = NoAction_44();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_87();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_87();
                        lanes_do_t.OPEN : aggregation_do_open_lane_87();
                        lanes_do_t.STORE : aggregation_do_store_lane_87();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_29") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_28;
    @name("SereneIngress.aggregation.add_lane_29") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_28) aggregation_add_lane_28 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_29;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_29") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_28) aggregation_add_and_read_snapshot_lane_28 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_29;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_29") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_28) aggregation_open_lane_28 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_29") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_28) aggregation_store_lane_28 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_29;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_29") action aggregation_do_add_lane_88() {
        hdr.values.lanes_29 = aggregation_add_lane_28.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_29") action aggregation_do_add_and_read_snapshot_lane_88() {
        hdr.values.lanes_29 = aggregation_add_and_read_snapshot_lane_28.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_29") action aggregation_do_open_lane_88() {
        hdr.values.lanes_29 = aggregation_open_lane_28.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_29") action aggregation_do_store_lane_88() {
        aggregation_store_lane_28.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_29") table aggregation_update_lane_28 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_88();
            aggregation_do_add_and_read_snapshot_lane_88();
            aggregation_do_open_lane_88();
            aggregation_do_store_lane_88();
            @defaultonly NoAction_45();
        }
        const default_action = NoAction_45();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_88();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_88();
                        lanes_do_t.OPEN : aggregation_do_open_lane_88();
                        lanes_do_t.STORE : aggregation_do_store_lane_88();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_30") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_29;
    @name("SereneIngress.aggregation.add_lane_30") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_29) aggregation_add_lane_29 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_30;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_30") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_29) aggregation_add_and_read_snapshot_lane_29 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_30;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_30") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_29) aggregation_open_lane_29 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_30") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_29) aggregation_store_lane_29 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_30;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_30") action aggregation_do_add_lane_89() {
        hdr.values.lanes_30 = aggregation_add_lane_29.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_30") action aggregation_do_add_and_read_snapshot_lane_89() {
        hdr.values.lanes_30 = aggregation_add_and_read_snapshot_lane_29.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_30") action aggregation_do_open_lane_89() {
        hdr.values.lanes_30 = aggregation_open_lane_29.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_30") action aggregation_do_store_lane_89() {
        aggregation_store_lane_29.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_30") table aggregation_update_lane_29 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_89();
            aggregation_do_add_and_read_snapshot_lane_89();
            aggregation_do_open_lane_89();
            aggregation_do_store_lane_89();
            @defaultonly NoAction_46();
        }
        const default_action = NoAction_46();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_89();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_89();
                        lanes_do_t.OPEN : aggregation_do_open_lane_89();
                        lanes_do_t.STORE : aggregation_do_store_lane_89();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_31") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_30;
    @name("SereneIngress.aggregation.add_lane_31") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_30) aggregation_add_lane_30 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_31;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_31") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_30) aggregation_add_and_read_snapshot_lane_30 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_31;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_31") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_30) aggregation_open_lane_30 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_31") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_30) aggregation_store_lane_30 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_31;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_31") action aggregation_do_add_lane_90() {
        hdr.values.lanes_31 = aggregation_add_lane_30.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_31") action aggregation_do_add_and_read_snapshot_lane_90() {
        hdr.values.lanes_31 = aggregation_add_and_read_snapshot_lane_30.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_31") action aggregation_do_open_lane_90() {
        hdr.values.lanes_31 = aggregation_open_lane_30.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_31") action aggregation_do_store_lane_90() {
        aggregation_store_lane_30.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_31") table aggregation_update_lane_30 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_90();
            aggregation_do_add_and_read_snapshot_lane_90();
            aggregation_do_open_lane_90();
            aggregation_do_store_lane_90();
            @defaultonly NoAction_47();
        }
        const default_action = NoAction_47();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_90();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_90();
                        lanes_do_t.OPEN : aggregation_do_open_lane_90();
                        lanes_do_t.STORE : aggregation_do_store_lane_90();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_32") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_31;
    @name("SereneIngress.aggregation.add_lane_32") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_31) aggregation_add_lane_31 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_32;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_32") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_31) aggregation_add_and_read_snapshot_lane_31 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_32;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_32") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_31) aggregation_open_lane_31 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_32") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_31) aggregation_store_lane_31 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_32;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_32") action aggregation_do_add_lane_91() {
        hdr.values.lanes_32 = aggregation_add_lane_31.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_32") action aggregation_do_add_and_read_snapshot_lane_91() {
        hdr.values.lanes_32 = aggregation_add_and_read_snapshot_lane_31.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_32") action aggregation_do_open_lane_91() {
        hdr.values.lanes_32 = aggregation_open_lane_31.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_32") action aggregation_do_store_lane_91() {
        aggregation_store_lane_31.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_32") table aggregation_update_lane_31 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_91();
            aggregation_do_add_and_read_snapshot_lane_91();
            aggregation_do_open_lane_91();
            aggregation_do_store_lane_91();
            @defaultonly NoAction_48();
        }
        const default_action = NoAction_48();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_91();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_91();
                        lanes_do_t.OPEN : aggregation_do_open_lane_91();
                        lanes_do_t.STORE : aggregation_do_store_lane_91();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_33") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_32;
    @name("SereneIngress.aggregation.add_lane_33") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_32) aggregation_add_lane_32 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_33;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_33") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_32) aggregation_add_and_read_snapshot_lane_32 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_33;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_33") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_32) aggregation_open_lane_32 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_33") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_32) aggregation_store_lane_32 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_33;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_33") action aggregation_do_add_lane_92() {
        hdr.values.lanes_33 = aggregation_add_lane_32.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_33") action aggregation_do_add_and_read_snapshot_lane_92() {
        hdr.values.lanes_33 = aggregation_add_and_read_snapshot_lane_32.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_33") action aggregation_do_open_lane_92() {
        hdr.values.lanes_33 = aggregation_open_lane_32.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_33") action aggregation_do_store_lane_92() {
        aggregation_store_lane_32.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_33") table aggregation_update_lane_32 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_92();
            aggregation_do_add_and_read_snapshot_lane_92();
            aggregation_do_open_lane_92();
            aggregation_do_store_lane_92();
            @defaultonly NoAction_49();
        }
        const default_action = NoAction_49();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_92();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_92();
                        lanes_do_t.OPEN : aggregation_do_open_lane_92();
                        lanes_do_t.STORE : aggregation_do_store_lane_92();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_34") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_33;
    @name("SereneIngress.aggregation.add_lane_34") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_33) aggregation_add_lane_33 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_34;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_34") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_33) aggregation_add_and_read_snapshot_lane_33 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_34;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_34") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_33) aggregation_open_lane_33 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_34") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_33) aggregation_store_lane_33 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_34;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_34") action aggregation_do_add_lane_93() {
        hdr.values.lanes_34 = aggregation_add_lane_33.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_34") action aggregation_do_add_and_read_snapshot_lane_93() {
        hdr.values.lanes_34 = aggregation_add_and_read_snapshot_lane_33.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_34") action aggregation_do_open_lane_93() {
        hdr.values.lanes_34 = aggregation_open_lane_33.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_34") action aggregation_do_store_lane_93() {
        aggregation_store_lane_33.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_34") table aggregation_update_lane_33 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_93();
            aggregation_do_add_and_read_snapshot_lane_93();
            aggregation_do_open_lane_93();
            aggregation_do_store_lane_93();
            @defaultonly NoAction_50();
        }
        const default_action = NoAction_50();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_93();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_93();
                        lanes_do_t.OPEN : aggregation_do_open_lane_93();
                        lanes_do_t.STORE : aggregation_do_store_lane_93();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_35") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_34;
    @name("SereneIngress.aggregation.add_lane_35") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_34) aggregation_add_lane_34 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_35;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_35") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_34) aggregation_add_and_read_snapshot_lane_34 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_35;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_35") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_34) aggregation_open_lane_34 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_35") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_34) aggregation_store_lane_34 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_35;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_35") action aggregation_do_add_lane_94() {
        hdr.values.lanes_35 = aggregation_add_lane_34.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_35") action aggregation_do_add_and_read_snapshot_lane_94() {
        hdr.values.lanes_35 = aggregation_add_and_read_snapshot_lane_34.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_35") action aggregation_do_open_lane_94() {
        hdr.values.lanes_35 = aggregation_open_lane_34.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_35") action aggregation_do_store_lane_94() {
        aggregation_store_lane_34.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_35") table aggregation_update_lane_34 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_94();
            aggregation_do_add_and_read_snapshot_lane_94();
            aggregation_do_open_lane_94();
            aggregation_do_store_lane_94();
            @defaultonly NoAction_51();
        }
        const default_action = NoAction_51();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_94();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_94();
                        lanes_do_t.OPEN : aggregation_do_open_lane_94();
                        lanes_do_t.STORE : aggregation_do_store_lane_94();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_36") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_35;
    @name("SereneIngress.aggregation.add_lane_36") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_35) aggregation_add_lane_35 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_36;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_36") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_35) aggregation_add_and_read_snapshot_lane_35 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_36;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_36") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_35) aggregation_open_lane_35 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_36") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_35) aggregation_store_lane_35 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_36;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_36") action aggregation_do_add_lane_95() {
        hdr.values.lanes_36 = aggregation_add_lane_35.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_36") action aggregation_do_add_and_read_snapshot_lane_95() {
        hdr.values.lanes_36 = aggregation_add_and_read_snapshot_lane_35.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_36") action aggregation_do_open_lane_95() {
        hdr.values.lanes_36 = aggregation_open_lane_35.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_36") action aggregation_do_store_lane_95() {
        aggregation_store_lane_35.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_36") table aggregation_update_lane_35 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_95();
            aggregation_do_add_and_read_snapshot_lane_95();
            aggregation_do_open_lane_95();
            aggregation_do_store_lane_95();
            @defaultonly NoAction_52();
        }
        const default_action = NoAction_52();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_95();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_95();
                        lanes_do_t.OPEN : aggregation_do_open_lane_95();
                        lanes_do_t.STORE : aggregation_do_store_lane_95();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_37") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_36;
    @name("SereneIngress.aggregation.add_lane_37") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_36) aggregation_add_lane_36 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_37;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_37") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_36) aggregation_add_and_read_snapshot_lane_36 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_37;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_37") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_36) aggregation_open_lane_36 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_37") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_36) aggregation_store_lane_36 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_37;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_37") action aggregation_do_add_lane_96() {
        hdr.values.lanes_37 = aggregation_add_lane_36.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_37") action aggregation_do_add_and_read_snapshot_lane_96() {
        hdr.values.lanes_37 = aggregation_add_and_read_snapshot_lane_36.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_37") action aggregation_do_open_lane_96() {
        hdr.values.lanes_37 = aggregation_open_lane_36.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_37") action aggregation_do_store_lane_96() {
        aggregation_store_lane_36.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_37") table aggregation_update_lane_36 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_96();
            aggregation_do_add_and_read_snapshot_lane_96();
            aggregation_do_open_lane_96();
            aggregation_do_store_lane_96();
            @defaultonly NoAction_53();
        }
        const default_action = NoAction_53();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_96();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_96();
                        lanes_do_t.OPEN : aggregation_do_open_lane_96();
                        lanes_do_t.STORE : aggregation_do_store_lane_96();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_38") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_37;
    @name("SereneIngress.aggregation.add_lane_38") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_37) aggregation_add_lane_37 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_38;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_38") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_37) aggregation_add_and_read_snapshot_lane_37 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_38;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_38") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_37) aggregation_open_lane_37 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_38") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_37) aggregation_store_lane_37 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_38;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_38") action aggregation_do_add_lane_97() {
        hdr.values.lanes_38 = aggregation_add_lane_37.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_38") action aggregation_do_add_and_read_snapshot_lane_97() {
        hdr.values.lanes_38 = aggregation_add_and_read_snapshot_lane_37.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_38") action aggregation_do_open_lane_97() {
        hdr.values.lanes_38 = aggregation_open_lane_37.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_38") action aggregation_do_store_lane_97() {
        aggregation_store_lane_37.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_38") table aggregation_update_lane_37 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_97();
            aggregation_do_add_and_read_snapshot_lane_97();
            aggregation_do_open_lane_97();
            aggregation_do_store_lane_97();
            @defaultonly NoAction_54();
        }
        const default_action = NoAction_54();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_97();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_97();
                        lanes_do_t.OPEN : aggregation_do_open_lane_97();
                        lanes_do_t.STORE : aggregation_do_store_lane_97();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_39") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_38;
    @name("SereneIngress.aggregation.add_lane_39") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_38) aggregation_add_lane_38 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_39;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_39") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_38) aggregation_add_and_read_snapshot_lane_38 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_39;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_39") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_38) aggregation_open_lane_38 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_39") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_38) aggregation_store_lane_38 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_39;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_39") action aggregation_do_add_lane_98() {
        hdr.values.lanes_39 = aggregation_add_lane_38.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_39") action aggregation_do_add_and_read_snapshot_lane_98() {
        hdr.values.lanes_39 = aggregation_add_and_read_snapshot_lane_38.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_39") action aggregation_do_open_lane_98() {
        hdr.values.lanes_39 = aggregation_open_lane_38.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_39") action aggregation_do_store_lane_98() {
        aggregation_store_lane_38.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_39") table aggregation_update_lane_38 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_98();
            aggregation_do_add_and_read_snapshot_lane_98();
            aggregation_do_open_lane_98();
            aggregation_do_store_lane_98();
            @defaultonly NoAction_55();
        }
        const default_action = NoAction_55();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_98();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_98();
                        lanes_do_t.OPEN : aggregation_do_open_lane_98();
                        lanes_do_t.STORE : aggregation_do_store_lane_98();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_40") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_39;
    @name("SereneIngress.aggregation.add_lane_40") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_39) aggregation_add_lane_39 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_40;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_40") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_39) aggregation_add_and_read_snapshot_lane_39 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_40;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_40") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_39) aggregation_open_lane_39 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_40") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_39) aggregation_store_lane_39 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_40;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_40") action aggregation_do_add_lane_99() {
        hdr.values.lanes_40 = aggregation_add_lane_39.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_40") action aggregation_do_add_and_read_snapshot_lane_99() {
        hdr.values.lanes_40 = aggregation_add_and_read_snapshot_lane_39.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_40") action aggregation_do_open_lane_99() {
        hdr.values.lanes_40 = aggregation_open_lane_39.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_40") action aggregation_do_store_lane_99() {
        aggregation_store_lane_39.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_40") table aggregation_update_lane_39 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_99();
            aggregation_do_add_and_read_snapshot_lane_99();
            aggregation_do_open_lane_99();
            aggregation_do_store_lane_99();
            @defaultonly NoAction_56();
        }
        const default_action = NoAction_56();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_99();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_99();
                        lanes_do_t.OPEN : aggregation_do_open_lane_99();
                        lanes_do_t.STORE : aggregation_do_store_lane_99();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_41") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_40;
    @name("SereneIngress.aggregation.add_lane_41") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_40) aggregation_add_lane_40 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_41;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_41") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_40) aggregation_add_and_read_snapshot_lane_40 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_41;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_41") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_40) aggregation_open_lane_40 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_41") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_40) aggregation_store_lane_40 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_41;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_41") action aggregation_do_add_lane_100() {
        hdr.values.lanes_41 = aggregation_add_lane_40.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_41") action aggregation_do_add_and_read_snapshot_lane_100() {
        hdr.values.lanes_41 = aggregation_add_and_read_snapshot_lane_40.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_41") action aggregation_do_open_lane_100() {
        hdr.values.lanes_41 = aggregation_open_lane_40.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_41") action aggregation_do_store_lane_100() {
        aggregation_store_lane_40.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_41") table aggregation_update_lane_40 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_100();
            aggregation_do_add_and_read_snapshot_lane_100();
            aggregation_do_open_lane_100();
            aggregation_do_store_lane_100();
            @defaultonly NoAction_57();
        }
        const default_action = NoAction_57();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_100();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_100();
                        lanes_do_t.OPEN : aggregation_do_open_lane_100();
                        lanes_do_t.STORE : aggregation_do_store_lane_100();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_42") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_41;
    @name("SereneIngress.aggregation.add_lane_42") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_41) aggregation_add_lane_41 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_42;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_42") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_41) aggregation_add_and_read_snapshot_lane_41 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_42;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_42") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_41) aggregation_open_lane_41 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_42") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_41) aggregation_store_lane_41 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_42;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_42") action aggregation_do_add_lane_101() {
        hdr.values.lanes_42 = aggregation_add_lane_41.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_42") action aggregation_do_add_and_read_snapshot_lane_101() {
        hdr.values.lanes_42 = aggregation_add_and_read_snapshot_lane_41.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_42") action aggregation_do_open_lane_101() {
        hdr.values.lanes_42 = aggregation_open_lane_41.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_42") action aggregation_do_store_lane_101() {
        aggregation_store_lane_41.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_42") table aggregation_update_lane_41 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_101();
            aggregation_do_add_and_read_snapshot_lane_101();
            aggregation_do_open_lane_101();
            aggregation_do_store_lane_101();
            @defaultonly NoAction_58();
        }
        const default_action = NoAction_58();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_101();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_101();
                        lanes_do_t.OPEN : aggregation_do_open_lane_101();
                        lanes_do_t.STORE : aggregation_do_store_lane_101();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_43") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_42;
    @name("SereneIngress.aggregation.add_lane_43") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_42) aggregation_add_lane_42 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_43;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_43") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_42) aggregation_add_and_read_snapshot_lane_42 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_43;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_43") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_42) aggregation_open_lane_42 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_43") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_42) aggregation_store_lane_42 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_43;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_43") action aggregation_do_add_lane_102() {
        hdr.values.lanes_43 = aggregation_add_lane_42.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_43") action aggregation_do_add_and_read_snapshot_lane_102() {
        hdr.values.lanes_43 = aggregation_add_and_read_snapshot_lane_42.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_43") action aggregation_do_open_lane_102() {
        hdr.values.lanes_43 = aggregation_open_lane_42.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_43") action aggregation_do_store_lane_102() {
        aggregation_store_lane_42.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_43") table aggregation_update_lane_42 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_102();
            aggregation_do_add_and_read_snapshot_lane_102();
            aggregation_do_open_lane_102();
            aggregation_do_store_lane_102();
            @defaultonly NoAction_59();
        }
        const default_action = NoAction_59();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_102();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_102();
                        lanes_do_t.OPEN : aggregation_do_open_lane_102();
                        lanes_do_t.STORE : aggregation_do_store_lane_102();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_44") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_43;
    @name("SereneIngress.aggregation.add_lane_44") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_43) aggregation_add_lane_43 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_44;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_44") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_43) aggregation_add_and_read_snapshot_lane_43 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_44;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_44") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_43) aggregation_open_lane_43 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_44") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_43) aggregation_store_lane_43 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_44;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_44") action aggregation_do_add_lane_103() {
        hdr.values.lanes_44 = aggregation_add_lane_43.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_44") action aggregation_do_add_and_read_snapshot_lane_103() {
        hdr.values.lanes_44 = aggregation_add_and_read_snapshot_lane_43.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_44") action aggregation_do_open_lane_103() {
        hdr.values.lanes_44 = aggregation_open_lane_43.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_44") action aggregation_do_store_lane_103() {
        aggregation_store_lane_43.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_44") table aggregation_update_lane_43 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_103();
            aggregation_do_add_and_read_snapshot_lane_103();
            aggregation_do_open_lane_103();
            aggregation_do_store_lane_103();
            @defaultonly NoAction_60();
        }
        const default_action = NoAction_60();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_103();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_103();
                        lanes_do_t.OPEN : aggregation_do_open_lane_103();
                        lanes_do_t.STORE : aggregation_do_store_lane_103();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_45") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_44;
    @name("SereneIngress.aggregation.add_lane_45") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_44) aggregation_add_lane_44 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_45;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_45") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_44) aggregation_add_and_read_snapshot_lane_44 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_45;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_45") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_44) aggregation_open_lane_44 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_45") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_44) aggregation_store_lane_44 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_45;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_45") action aggregation_do_add_lane_104() {
        hdr.values.lanes_45 = aggregation_add_lane_44.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_45") action aggregation_do_add_and_read_snapshot_lane_104() {
        hdr.values.lanes_45 = aggregation_add_and_read_snapshot_lane_44.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_45") action aggregation_do_open_lane_104() {
        hdr.values.lanes_45 = aggregation_open_lane_44.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_45") action aggregation_do_store_lane_104() {
        aggregation_store_lane_44.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_45") table aggregation_update_lane_44 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_104();
            aggregation_do_add_and_read_snapshot_lane_104();
            aggregation_do_open_lane_104();
            aggregation_do_store_lane_104();
            @defaultonly NoAction_61();
        }
        const default_action = NoAction_61();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_104();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_104();
                        lanes_do_t.OPEN : aggregation_do_open_lane_104();
                        lanes_do_t.STORE : aggregation_do_store_lane_104();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_46") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_45;
    @name("SereneIngress.aggregation.add_lane_46") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_45) aggregation_add_lane_45 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_46;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_46") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_45) aggregation_add_and_read_snapshot_lane_45 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_46;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_46") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_45) aggregation_open_lane_45 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_46") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_45) aggregation_store_lane_45 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_46;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_46") action aggregation_do_add_lane_105() {
        hdr.values.lanes_46 = aggregation_add_lane_45.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_46") action aggregation_do_add_and_read_snapshot_lane_105() {
        hdr.values.lanes_46 = aggregation_add_and_read_snapshot_lane_45.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_46") action aggregation_do_open_lane_105() {
        hdr.values.lanes_46 = aggregation_open_lane_45.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_46") action aggregation_do_store_lane_105() {
        aggregation_store_lane_45.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_46") table aggregation_update_lane_45 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_105();
            aggregation_do_add_and_read_snapshot_lane_105();
            aggregation_do_open_lane_105();
            aggregation_do_store_lane_105();
            @defaultonly NoAction_62();
        }
        const default_action = NoAction_62();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_105();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_105();
                        lanes_do_t.OPEN : aggregation_do_open_lane_105();
                        lanes_do_t.STORE : aggregation_do_store_lane_105();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_47") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_46;
    @name("SereneIngress.aggregation.add_lane_47") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_46) aggregation_add_lane_46 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_47;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_47") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_46) aggregation_add_and_read_snapshot_lane_46 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_47;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_47") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_46) aggregation_open_lane_46 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_47") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_46) aggregation_store_lane_46 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_47;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_47") action aggregation_do_add_lane_106() {
        hdr.values.lanes_47 = aggregation_add_lane_46.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_47") action aggregation_do_add_and_read_snapshot_lane_106() {
        hdr.values.lanes_47 = aggregation_add_and_read_snapshot_lane_46.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_47") action aggregation_do_open_lane_106() {
        hdr.values.lanes_47 = aggregation_open_lane_46.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_47") action aggregation_do_store_lane_106() {
        aggregation_store_lane_46.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_47") table aggregation_update_lane_46 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_106();
            aggregation_do_add_and_read_snapshot_lane_106();
            aggregation_do_open_lane_106();
            aggregation_do_store_lane_106();
            @defaultonly NoAction_63();
        }
        const default_action = NoAction_63();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_106();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_106();
                        lanes_do_t.OPEN : aggregation_do_open_lane_106();
                        lanes_do_t.STORE : aggregation_do_store_lane_106();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_48") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_47;
    @name("SereneIngress.aggregation.add_lane_48") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_47) aggregation_add_lane_47 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_48;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_48") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_47) aggregation_add_and_read_snapshot_lane_47 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_48;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_48") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_47) aggregation_open_lane_47 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_48") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_47) aggregation_store_lane_47 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_48;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_48") action aggregation_do_add_lane_107() {
        hdr.values.lanes_48 = aggregation_add_lane_47.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_48") action aggregation_do_add_and_read_snapshot_lane_107() {
        hdr.values.lanes_48 = aggregation_add_and_read_snapshot_lane_47.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_48") action aggregation_do_open_lane_107() {
        hdr.values.lanes_48 = aggregation_open_lane_47.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_48") action aggregation_do_store_lane_107() {
        aggregation_store_lane_47.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_48") table aggregation_update_lane_47 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_107();
            aggregation_do_add_and_read_snapshot_lane_107();
            aggregation_do_open_lane_107();
            aggregation_do_store_lane_107();
            @defaultonly NoAction_64();
        }
        const default_action = NoAction_64();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_107();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_107();
                        lanes_do_t.OPEN : aggregation_do_open_lane_107();
                        lanes_do_t.STORE : aggregation_do_store_lane_107();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_49") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_48;
    @name("SereneIngress.aggregation.add_lane_49") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_48) aggregation_add_lane_48 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_49;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_49") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_48) aggregation_add_and_read_snapshot_lane_48 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_49;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_49") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_48) aggregation_open_lane_48 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_49") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_48) aggregation_store_lane_48 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_49;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_49") action aggregation_do_add_lane_108() {
        hdr.values.lanes_49 = aggregation_add_lane_48.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_49") action aggregation_do_add_and_read_snapshot_lane_108() {
        hdr.values.lanes_49 = aggregation_add_and_read_snapshot_lane_48.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_49") action aggregation_do_open_lane_108() {
        hdr.values.lanes_49 = aggregation_open_lane_48.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_49") action aggregation_do_store_lane_108() {
        aggregation_store_lane_48.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_49") table aggregation_update_lane_48 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_108();
            aggregation_do_add_and_read_snapshot_lane_108();
            aggregation_do_open_lane_108();
            aggregation_do_store_lane_108();
            @defaultonly NoAction_65();
        }
        const default_action = NoAction_65();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_108();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_108();
                        lanes_do_t.OPEN : aggregation_do_open_lane_108();
                        lanes_do_t.STORE : aggregation_do_store_lane_108();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_50") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_49;
    @name("SereneIngress.aggregation.add_lane_50") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_49) aggregation_add_lane_49 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_50;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_50") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_49) aggregation_add_and_read_snapshot_lane_49 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_50;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_50") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_49) aggregation_open_lane_49 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_50") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_49) aggregation_store_lane_49 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_50;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_50") action aggregation_do_add_lane_109() {
        hdr.values.lanes_50 = aggregation_add_lane_49.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_50") action aggregation_do_add_and_read_snapshot_lane_109() {
        hdr.values.lanes_50 = aggregation_add_and_read_snapshot_lane_49.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_50") action aggregation_do_open_lane_109() {
        hdr.values.lanes_50 = aggregation_open_lane_49.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_50") action aggregation_do_store_lane_109() {
        aggregation_store_lane_49.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_50") table aggregation_update_lane_49 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_109();
            aggregation_do_add_and_read_snapshot_lane_109();
            aggregation_do_open_lane_109();
            aggregation_do_store_lane_109();
            @defaultonly NoAction_66();
        }
        const default_action = NoAction_66();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_109();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_109();
                        lanes_do_t.OPEN : aggregation_do_open_lane_109();
                        lanes_do_t.STORE : aggregation_do_store_lane_109();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_51") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_50;
    @name("SereneIngress.aggregation.add_lane_51") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_50) aggregation_add_lane_50 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_51;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_51") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_50) aggregation_add_and_read_snapshot_lane_50 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_51;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_51") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_50) aggregation_open_lane_50 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_51") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_50) aggregation_store_lane_50 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_51;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_51") action aggregation_do_add_lane_110() {
        hdr.values.lanes_51 = aggregation_add_lane_50.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_51") action aggregation_do_add_and_read_snapshot_lane_110() {
        hdr.values.lanes_51 = aggregation_add_and_read_snapshot_lane_50.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_51") action aggregation_do_open_lane_110() {
        hdr.values.lanes_51 = aggregation_open_lane_50.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_51") action aggregation_do_store_lane_110() {
        aggregation_store_lane_50.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_51") table aggregation_update_lane_50 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_110();
            aggregation_do_add_and_read_snapshot_lane_110();
            aggregation_do_open_lane_110();
            aggregation_do_store_lane_110();
            @defaultonly NoAction_67();
        }
        const default_action = NoAction_67();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_110();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_110();
                        lanes_do_t.OPEN : aggregation_do_open_lane_110();
                        lanes_do_t.STORE : aggregation_do_store_lane_110();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_52") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_51;
    @name("SereneIngress.aggregation.add_lane_52") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_51) aggregation_add_lane_51 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_52;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_52") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_51) aggregation_add_and_read_snapshot_lane_51 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_52;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_52") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_51) aggregation_open_lane_51 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_52") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_51) aggregation_store_lane_51 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_52;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_52") action aggregation_do_add_lane_111() {
        hdr.values.lanes_52 = aggregation_add_lane_51.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_52") action aggregation_do_add_and_read_snapshot_lane_111() {
        hdr.values.lanes_52 = aggregation_add_and_read_snapshot_lane_51.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_52") action aggregation_do_open_lane_111() {
        hdr.values.lanes_52 = aggregation_open_lane_51.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_52") action aggregation_do_store_lane_111() {
        aggregation_store_lane_51.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_52") table aggregation_update_lane_51 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_111();
            aggregation_do_add_and_read_snapshot_lane_111();
            aggregation_do_open_lane_111();
            aggregation_do_store_lane_111();
            @defaultonly NoAction_68();
        }
        const default_action = NoAction_68();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_111();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_111();
                        lanes_do_t.OPEN : aggregation_do_open_lane_111();
                        lanes_do_t.STORE : aggregation_do_store_lane_111();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_53") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_52;
    @name("SereneIngress.aggregation.add_lane_53") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_52) aggregation_add_lane_52 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_53;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_53") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_52) aggregation_add_and_read_snapshot_lane_52 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_53;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_53") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_52) aggregation_open_lane_52 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_53") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_52) aggregation_store_lane_52 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_53;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_53") action aggregation_do_add_lane_112() {
        hdr.values.lanes_53 = aggregation_add_lane_52.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_53") action aggregation_do_add_and_read_snapshot_lane_112() {
        hdr.values.lanes_53 = aggregation_add_and_read_snapshot_lane_52.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_53") action aggregation_do_open_lane_112() {
        hdr.values.lanes_53 = aggregation_open_lane_52.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_53") action aggregation_do_store_lane_112() {
        aggregation_store_lane_52.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_53") table aggregation_update_lane_52 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_112();
            aggregation_do_add_and_read_snapshot_lane_112();
            aggregation_do_open_lane_112();
            aggregation_do_store_lane_112();
            @defaultonly NoAction_69();
        }
        const default_action = NoAction_69();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_112();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_112();
                        lanes_do_t.OPEN : aggregation_do_open_lane_112();
                        lanes_do_t.STORE : aggregation_do_store_lane_112();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_54") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_53;
    @name("SereneIngress.aggregation.add_lane_54") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_53) aggregation_add_lane_53 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_54;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_54") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_53) aggregation_add_and_read_snapshot_lane_53 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_54;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_54") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_53) aggregation_open_lane_53 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_54") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_53) aggregation_store_lane_53 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_54;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_54") action aggregation_do_add_lane_113() {
        hdr.values.lanes_54 = aggregation_add_lane_53.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_54") action aggregation_do_add_and_read_snapshot_lane_113() {
        hdr.values.lanes_54 = aggregation_add_and_read_snapshot_lane_53.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_54") action aggregation_do_open_lane_113() {
        hdr.values.lanes_54 = aggregation_open_lane_53.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_54") action aggregation_do_store_lane_113() {
        aggregation_store_lane_53.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_54") table aggregation_update_lane_53 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_113();
            aggregation_do_add_and_read_snapshot_lane_113();
            aggregation_do_open_lane_113();
            aggregation_do_store_lane_113();
            @defaultonly NoAction_70();
        }
        const default_action = NoAction_70();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_113();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_113();
                        lanes_do_t.OPEN : aggregation_do_open_lane_113();
                        lanes_do_t.STORE : aggregation_do_store_lane_113();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_55") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_54;
    @name("SereneIngress.aggregation.add_lane_55") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_54) aggregation_add_lane_54 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_55;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_55") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_54) aggregation_add_and_read_snapshot_lane_54 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_55;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_55") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_54) aggregation_open_lane_54 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_55") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_54) aggregation_store_lane_54 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_55;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_55") action aggregation_do_add_lane_114() {
        hdr.values.lanes_55 = aggregation_add_lane_54.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_55") action aggregation_do_add_and_read_snapshot_lane_114() {
        hdr.values.lanes_55 = aggregation_add_and_read_snapshot_lane_54.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_55") action aggregation_do_open_lane_114() {
        hdr.values.lanes_55 = aggregation_open_lane_54.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_55") action aggregation_do_store_lane_114() {
        aggregation_store_lane_54.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_55") table aggregation_update_lane_54 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_114();
            aggregation_do_add_and_read_snapshot_lane_114();
            aggregation_do_open_lane_114();
            aggregation_do_store_lane_114();
            @defaultonly NoAction_71();
        }
        const default_action = NoAction_71();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_114();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_114();
                        lanes_do_t.OPEN : aggregation_do_open_lane_114();
                        lanes_do_t.STORE : aggregation_do_store_lane_114();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_56") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_55;
    @name("SereneIngress.aggregation.add_lane_56") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_55) aggregation_add_lane_55 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_56;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_56") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_55) aggregation_add_and_read_snapshot_lane_55 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_56;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_56") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_55) aggregation_open_lane_55 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_56") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_55) aggregation_store_lane_55 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_56;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_56") action aggregation_do_add_lane_115() {
        hdr.values.lanes_56 = aggregation_add_lane_55.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_56") action aggregation_do_add_and_read_snapshot_lane_115() {
        hdr.values.lanes_56 = aggregation_add_and_read_snapshot_lane_55.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_56") action aggregation_do_open_lane_115() {
        hdr.values.lanes_56 = aggregation_open_lane_55.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_56") action aggregation_do_store_lane_115() {
        aggregation_store_lane_55.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_56") table aggregation_update_lane_55 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_115();
            aggregation_do_add_and_read_snapshot_lane_115();
            aggregation_do_open_lane_115();
            aggregation_do_store_lane_115();
            @defaultonly NoAction_72();
        }
        const default_action = NoAction_72();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_115();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_115();
                        lanes_do_t.OPEN : aggregation_do_open_lane_115();
                        lanes_do_t.STORE : aggregation_do_store_lane_115();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_57") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_56;
    @name("SereneIngress.aggregation.add_lane_57") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_56) aggregation_add_lane_56 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_57;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_57") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_56) aggregation_add_and_read_snapshot_lane_56 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_57;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_57") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_56) aggregation_open_lane_56 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_57") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_56) aggregation_store_lane_56 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_57;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_57") action aggregation_do_add_lane_116() {
        hdr.values.lanes_57 = aggregation_add_lane_56.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_57") action aggregation_do_add_and_read_snapshot_lane_116() {
        hdr.values.lanes_57 = aggregation_add_and_read_snapshot_lane_56.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_57") action aggregation_do_open_lane_116() {
        hdr.values.lanes_57 = aggregation_open_lane_56.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_57") action aggregation_do_store_lane_116() {
        aggregation_store_lane_56.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_57") table aggregation_update_lane_56 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_116();
            aggregation_do_add_and_read_snapshot_lane_116();
            aggregation_do_open_lane_116();
            aggregation_do_store_lane_116();
            @defaultonly NoAction_73();
        }
        const default_action = NoAction_73();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_116();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_116();
                        lanes_do_t.OPEN : aggregation_do_open_lane_116();
                        lanes_do_t.STORE : aggregation_do_store_lane_116();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_58") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_57;
    @name("SereneIngress.aggregation.add_lane_58") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_57) aggregation_add_lane_57 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_58;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_58") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_57) aggregation_add_and_read_snapshot_lane_57 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_58;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_58") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_57) aggregation_open_lane_57 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_58") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_57) aggregation_store_lane_57 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_58;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_58") action aggregation_do_add_lane_117() {
        hdr.values.lanes_58 = aggregation_add_lane_57.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_58") action aggregation_do_add_and_read_snapshot_lane_117() {
        hdr.values.lanes_58 = aggregation_add_and_read_snapshot_lane_57.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_58") action aggregation_do_open_lane_117() {
        hdr.values.lanes_58 = aggregation_open_lane_57.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_58") action aggregation_do_store_lane_117() {
        aggregation_store_lane_57.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_58") table aggregation_update_lane_57 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_117();
            aggregation_do_add_and_read_snapshot_lane_117();
            aggregation_do_open_lane_117();
            aggregation_do_store_lane_117();
            @defaultonly NoAction_74();
        }
        const default_action = NoAction_74();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_117();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_117();
                        lanes_do_t.OPEN : aggregation_do_open_lane_117();
                        lanes_do_t.STORE : aggregation_do_store_lane_117();
        }
        size = 4;
    }
    @name("SereneIngress.aggregation.lanes_of_59") Register<lane_t, bit<12>>(32w2816) aggregation_lanes_of_58;
    @name("SereneIngress.aggregation.add_lane_59") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_58) aggregation_add_lane_58 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_59;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.add_and_read_snapshot_lane_59") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_58) aggregation_add_and_read_snapshot_lane_58 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = value.sum + hdr.values.lanes_59;
            }
            read = value.snapshot;
        }
    };
    @name("SereneIngress.aggregation.open_lane_59") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_58) aggregation_open_lane_58 = {
        void apply(inout lane_t value, out bit<32> read) {
            if (meta.known == 32w0) {
                value.sum = 32w0;
                value.snapshot = 32w0;
            } else {
                value.snapshot = value.sum;
            }
            read = value.sum;
        }
    };
    @name("SereneIngress.aggregation.store_lane_59") RegisterAction<lane_t, bit<12>, bit<32>>(aggregation_lanes_of_58) aggregation_store_lane_58 = {
        void apply(inout lane_t value) {
            value.snapshot = hdr.values.lanes_59;
        }
    };
    @name("SereneIngress.aggregation.do_add_lane_59") action aggregation_do_add_lane_118() {
        hdr.values.lanes_59 = aggregation_add_lane_58.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_add_and_read_snapshot_lane_59") action aggregation_do_add_and_read_snapshot_lane_118() {
        hdr.values.lanes_59 = aggregation_add_and_read_snapshot_lane_58.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_open_lane_59") action aggregation_do_open_lane_118() {
        hdr.values.lanes_59 = aggregation_open_lane_58.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.do_store_lane_59") action aggregation_do_store_lane_118() {
        aggregation_store_lane_58.execute(meta.slot[11:0]);
    }
    @name("SereneIngress.aggregation.update_lane_59") table aggregation_update_lane_58 {
        key = {
            meta.lanes_do: ternary @name("meta.lanes_do");
        }
        actions = {
            aggregation_do_add_lane_118();
            aggregation_do_add_and_read_snapshot_lane_118();
            aggregation_do_open_lane_118();
            aggregation_do_store_lane_118();
            @defaultonly NoAction_75();
        }
        const default_action = NoAction_75();
        const entries = {
                        lanes_do_t.ADD : aggregation_do_add_lane_118();
                        lanes_do_t.ADD_READ_SNAPSHOT : aggregation_do_add_and_read_snapshot_lane_118();
                        lanes_do_t.OPEN : aggregation_do_open_lane_118();
                        lanes_do_t.STORE : aggregation_do_store_lane_118();
        }
        size = 4;
    }
    @name("SereneIngress.refusal.dropped_malformed") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) refusal_dropped_malformed;
    @name("SereneIngress.refusal.count_malformed") action refusal_count_malformed_0() {
        refusal_dropped_malformed.count(1w0);
    }
    @name("SereneIngress.refusal.dropped_bad_checksum") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) refusal_dropped_bad_checksum;
    @name("SereneIngress.refusal.count_bad_checksum") action refusal_count_bad_checksum_0() {
        refusal_dropped_bad_checksum.count(1w0);
    }
    @name("SereneIngress.refusal.dropped_stranger") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) refusal_dropped_stranger;
    @name("SereneIngress.refusal.count_stranger") action refusal_count_stranger_0() {
        refusal_dropped_stranger.count(1w0);
    }
    @name("SereneIngress.refusal.dropped_no_policy") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) refusal_dropped_no_policy;
    @name("SereneIngress.refusal.count_no_policy") action refusal_count_no_policy_0() {
        refusal_dropped_no_policy.count(1w0);
    }
    @name("SereneIngress.refusal.dropped_wrong_session") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) refusal_dropped_wrong_session;
    @name("SereneIngress.refusal.count_wrong_session") action refusal_count_wrong_session_0() {
        refusal_dropped_wrong_session.count(1w0);
    }
    @name("SereneIngress.refusal.dropped_wrong_slot") Counter<bit<64>, bit<1>>(32w1, CounterType_t.PACKETS_AND_BYTES) refusal_dropped_wrong_slot;
    @name("SereneIngress.refusal.count_wrong_slot") action refusal_count_wrong_slot_0() {
        refusal_dropped_wrong_slot.count(1w0);
    }
    @name("SereneIngress.set_bridge") action set_bridge() {
        hdr.bridge.setValid();
        hdr.bridge.purpose = purpose_t.NONE;
        hdr.bridge.padding = 7w0;
        hdr.bridge.ingress_port = ig_intr_md.ingress_port;
    }
    @name("SereneIngress.send_as_told") action send_as_told() {
        ig_tm_md.ucast_egress_port = hdr.packet_out.egress_port;
    }
    @name("SereneIngress.set_group") action set_group(@name("number") bit<16> number) {
        meta.group = number;
    }
    @name("SereneIngress.group") table group_0 {
        key = {
            hdr.serene.job: exact @name("hdr.serene.job");
        }
        actions = {
            set_group();
            @defaultonly NoAction_76();
        }
        const default_action = NoAction_76();
        const entries = {
                        8w0 : set_group(16w16);
                        8w1 : set_group(16w17);
                        8w2 : set_group(16w18);
                        8w3 : set_group(16w19);
                        8w4 : set_group(16w20);
                        8w5 : set_group(16w21);
                        8w6 : set_group(16w22);
                        8w7 : set_group(16w23);
        }
        size = 8;
    }
    @name("SereneIngress.welcome") action welcome() {
        hdr.called.setValid();
        hdr.called.waiting = 32w0;
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
        hdr.serene.members = meta.policy.members;
        hdr.membership.vector_length = meta.job.vector_length;
        hdr.membership.slots = meta.job.slots;
        hdr.membership.scale = meta.job.scale;
        hdr.membership.limit = meta.job.limit;
        hdr.membership.lanes = 16w60;
        hdr.membership.workers = meta.job.workers;
        hdr.membership.lost_sessions = meta.job.lost_sessions;
        hdr.bridge.purpose = purpose_t.WELCOME;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }
    @name("SereneIngress.reply") action reply() {
        hdr.called.setValid();
        hdr.called.waiting = 32w0;
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
        hdr.serene.members = meta.policy.members;
        hdr.serene.round = -meta.minus_base;
        hdr.bridge.purpose = purpose_t.ANSWER;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }
    @name("SereneIngress.reply_empty") action reply_empty() {
        hdr.called.setValid();
        hdr.called.waiting = 32w0;
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
        hdr.serene.members = meta.policy.members;
        hdr.serene.round = 32w0;
        hdr.bridge.purpose = purpose_t.ANSWER;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }
    @name("SereneIngress.release") action release() {
        hdr.called.setValid();
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
        hdr.serene.members = meta.policy.members;
        hdr.serene.round = -meta.minus_base;
        hdr.bridge.purpose = purpose_t.RELEASE;
        hdr.called.waiting = meta.waiting;
        ig_tm_md.mcast_grp_a = meta.group;
    }
    @name("SereneIngress.nudge") action nudge() {
        hdr.called.setValid();
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
        hdr.serene.members = meta.policy.members;
        hdr.serene.round = 32w0;
        hdr.bridge.purpose = purpose_t.NUDGE;
        hdr.called.waiting = meta.waiting;
        ig_tm_md.mcast_grp_a = meta.group;
    }
    @name("SereneIngress.pass_again") action pass_again() {
        hdr.serene.round = hdr.serene.round + meta.bound;
        hdr.bridge.setInvalid();
        ig_tm_md.ucast_egress_port = 9w6;
        ig_tm_md.bypass_egress = 1w1;
    }
    @name("SereneIngress.dispatch") table dispatch_0 {
        key = {
            meta.request      : ternary @name("meta.request");
            meta.member       : ternary @name("meta.member");
            meta.known_job    : ternary @name("meta.known_job");
            meta.known_policy : ternary @name("meta.known_policy");
            meta.verdict      : ternary @name("meta.verdict");
            meta.lanes_do     : ternary @name("meta.lanes_do");
            meta.round_counted: ternary @name("meta.round_counted");
            meta.lacking      : ternary @name("meta.lacking");
        }
        actions = {
            welcome();
            nudge();
            release();
            reply_empty();
            pass_again();
            reply();
            @defaultonly NoAction_77();
        }
        const default_action = NoAction_77();
        const entries = {
                        (request_t.HELLO, 1w1, 1w1, 1w1, default, default, default, default) : welcome();
                        (default, default, default, default, verdict_t.OPENING, default, default, default) : nudge();
                        (default, default, default, default, verdict_t.COMPLETED, default, default, default) : release();
                        (default, default, default, default, verdict_t.READ, lanes_do_t.OPEN, default, default) : reply_empty();
                        (default, default, default, default, verdict_t.READ, default, default, default) : reply();
                        (default, default, default, default, verdict_t.GO, default, 1w1, 32w0) : pass_again();
                        (default, default, default, default, verdict_t.WAIT, default, 1w1, 32w0) : pass_again();
                        (default, default, default, default, verdict_t.FREE, default, default, default) : reply();
                        (default, default, default, default, verdict_t.GO, default, default, default) : reply();
        }
        size = 16;
    }
    apply {
        set_bridge();
        if (hdr.packet_out.isValid()) {
            send_as_told();
        } else if (!hdr.udp.isValid() || hdr.udp.destination_port != 16w24142) {
            if (hdr.ethernet.ether_type == 16w0x8100 || hdr.ethernet.ether_type == 16w0x88a8) {
                forwarding_count_tagged_0();
            } else {
                if (hdr.arp.isValid()) {
                    forwarding_claim_by_arp_0();
                } else if (hdr.ipv4.isValid()) {
                    forwarding_claim_by_ip_0();
                }
                forwarding_switch_mac.apply();
                forwarding_switch_ip.apply();
                if (meta.impostor == 1w1) {
                    forwarding_count_impostor_0();
                } else {
                    forwarding_known_source.apply();
                    if (hdr.arp.isValid() && hdr.arp.operation == 16w1) {
                        forwarding_switch_address.apply();
                    }
                    if (meta.answered == 1w0) {
                        forwarding_forward.apply();
                    }
                }
            }
        } else {
            group_0.apply();
            admission_subtract_lengths_0();
            admission_verdict.apply();
            admission_member.apply();
            admission_job.apply();
            admission_policy.apply();
            admission_refused.apply();
            barrier_sender_bit.apply();
            barrier_set_era_0();
            barrier_set_mark_0();
            barrier_counted_in.apply();
            barrier_set_target_0();
            if (((bit<8>)meta.request)[3:3] == 1w1 && meta.known_policy == 1w1 && (meta.room[31:31] == 1w0 && meta.room[12:0] != 13w0) && meta.session_gap == 32w0 && (meta.member == 1w1 || ((bit<8>)meta.request)[2:2] == 1w1)) {
                if (meta.request == request_t.COMPLETION) {
                    if (meta.epoch_gap == 32w0) {
                        barrier_complete_round_below_0();
                        barrier_complete_round_beyond_0();
                        barrier_complete_round_0();
                    }
                } else {
                    barrier_look_at_session_0();
                    if (meta.request == request_t.PUSH && meta.epoch_gap == 32w0) {
                        barrier_look_ahead_0();
                        barrier_look_behind_0();
                        barrier_look_at_base_0();
                    } else {
                        barrier_look_at_any_base_0();
                    }
                }
            }
            barrier_decide.apply();
            barrier_queue.apply();
            barrier_find_old_round_0();
            barrier_arrival.apply();
            barrier_find_lacking_0();
            contributed_total.apply();
            contributed_update_total.apply();
            contributed_say_seen.apply();
            contributed_rounds_unread.apply();
            if (((bit<8>)meta.verdict)[2:2] == 1w1 && meta.known == 32w0) {
                contributed_count_fresh_0();
            }
            if (((bit<8>)meta.verdict)[2:2] == 1w1 && meta.known == 32w0) {
                contributed_count_staleness_0();
            }
            if (((bit<8>)meta.verdict)[2:2] == 1w1 && meta.known != 32w0) {
                contributed_count_repeat_0();
            }
            if (meta.verdict == verdict_t.WAIT && !(meta.round_counted == 1w1 && meta.lacking == 32w0)) {
                contributed_count_blocked_0();
            }
            if (meta.verdict == verdict_t.WRONG_ROUND) {
                contributed_count_wrong_round_0();
            }
            if (meta.verdict == verdict_t.OLD_SESSION) {
                contributed_count_old_session_0();
            }
            aggregation_update_lane.apply();
            aggregation_update_lane_0.apply();
            aggregation_update_lane_1.apply();
            aggregation_update_lane_2.apply();
            aggregation_update_lane_3.apply();
            aggregation_update_lane_4.apply();
            aggregation_update_lane_5.apply();
            aggregation_update_lane_6.apply();
            aggregation_update_lane_7.apply();
            aggregation_update_lane_8.apply();
            aggregation_update_lane_9.apply();
            aggregation_update_lane_10.apply();
            aggregation_update_lane_11.apply();
            aggregation_update_lane_12.apply();
            aggregation_update_lane_13.apply();
            aggregation_update_lane_14.apply();
            aggregation_update_lane_15.apply();
            aggregation_update_lane_16.apply();
            aggregation_update_lane_17.apply();
            aggregation_update_lane_18.apply();
            aggregation_update_lane_19.apply();
            aggregation_update_lane_20.apply();
            aggregation_update_lane_21.apply();
            aggregation_update_lane_22.apply();
            aggregation_update_lane_23.apply();
            aggregation_update_lane_24.apply();
            aggregation_update_lane_25.apply();
            aggregation_update_lane_26.apply();
            aggregation_update_lane_27.apply();
            aggregation_update_lane_28.apply();
            aggregation_update_lane_29.apply();
            aggregation_update_lane_30.apply();
            aggregation_update_lane_31.apply();
            aggregation_update_lane_32.apply();
            aggregation_update_lane_33.apply();
            aggregation_update_lane_34.apply();
            aggregation_update_lane_35.apply();
            aggregation_update_lane_36.apply();
            aggregation_update_lane_37.apply();
            aggregation_update_lane_38.apply();
            aggregation_update_lane_39.apply();
            aggregation_update_lane_40.apply();
            aggregation_update_lane_41.apply();
            aggregation_update_lane_42.apply();
            aggregation_update_lane_43.apply();
            aggregation_update_lane_44.apply();
            aggregation_update_lane_45.apply();
            aggregation_update_lane_46.apply();
            aggregation_update_lane_47.apply();
            aggregation_update_lane_48.apply();
            aggregation_update_lane_49.apply();
            aggregation_update_lane_50.apply();
            aggregation_update_lane_51.apply();
            aggregation_update_lane_52.apply();
            aggregation_update_lane_53.apply();
            aggregation_update_lane_54.apply();
            aggregation_update_lane_55.apply();
            aggregation_update_lane_56.apply();
            aggregation_update_lane_57.apply();
            aggregation_update_lane_58.apply();
            dispatch_0.apply();
            if (meta.refusal == refusal_t.MALFORMED) {
                refusal_count_malformed_0();
            }
            if (meta.refusal == refusal_t.BAD_CHECKSUM) {
                refusal_count_bad_checksum_0();
            }
            if (meta.refusal == refusal_t.STRANGER) {
                refusal_count_stranger_0();
            }
            if (meta.refusal == refusal_t.NO_POLICY) {
                refusal_count_no_policy_0();
            }
            if (meta.refusal == refusal_t.WRONG_SESSION) {
                refusal_count_wrong_session_0();
            }
            if (meta.refusal == refusal_t.WRONG_SLOT) {
                refusal_count_wrong_slot_0();
            }
        }
    }
}

@pa_container_type("egress", "hdr.serene.op", "normal") @pa_container_size("egress", "hdr.serene.op", 8) @pa_container_type("egress", "hdr.serene.seq", "normal") @pa_container_type("egress", "hdr.serene.total", "normal") @pa_container_type("egress", "hdr.udp.length", "normal") @pa_container_type("egress", "hdr.ipv4.total_length", "normal") control SereneEgress(inout headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md, in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md, inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    @name("SereneEgress.answer.index") bit<8> answer_index;
    @name("SereneEgress.answer.index") bit<8> answer_index_0;
    @name("SereneEgress.answer.index") bit<8> answer_index_1;
    @name("SereneEgress.answer.answers") Counter<bit<32>, bit<8>>(32w256, CounterType_t.PACKETS) answer_answers;
    @name("SereneEgress.answer.releases") Counter<bit<32>, bit<8>>(32w256, CounterType_t.PACKETS) answer_releases;
    @name("SereneEgress.answer.nudges") Counter<bit<32>, bit<8>>(32w256, CounterType_t.PACKETS) answer_nudges;
    @name("SereneEgress.answer.set_receiver") action answer_set_receiver_0(@name("worker") worker_t worker_1, @name("bitmap") worker_bitmap_t bitmap) {
        meta.receiver = worker_1;
        meta.receiver_bit = bitmap;
    }
    @name("SereneEgress.answer.set_sender") action answer_set_sender_0() {
        meta.receiver = hdr.serene.worker;
        meta.receiver_bit = 32w0;
    }
    @name("SereneEgress.answer.receiver") table answer_receiver {
        key = {
            eg_intr_md.egress_rid: exact @name("eg_intr_md.egress_rid");
        }
        actions = {
            answer_set_receiver_0();
            answer_set_sender_0();
        }
        const default_action = answer_set_sender_0();
        const entries = {
                        16w1 : answer_set_receiver_0(8w0, 32w1);
                        16w2 : answer_set_receiver_0(8w1, 32w2);
                        16w3 : answer_set_receiver_0(8w2, 32w4);
                        16w4 : answer_set_receiver_0(8w3, 32w8);
                        16w5 : answer_set_receiver_0(8w4, 32w16);
                        16w6 : answer_set_receiver_0(8w5, 32w32);
                        16w7 : answer_set_receiver_0(8w6, 32w64);
                        16w8 : answer_set_receiver_0(8w7, 32w128);
                        16w9 : answer_set_receiver_0(8w8, 32w256);
                        16w10 : answer_set_receiver_0(8w9, 32w512);
                        16w11 : answer_set_receiver_0(8w10, 32w1024);
                        16w12 : answer_set_receiver_0(8w11, 32w2048);
                        16w13 : answer_set_receiver_0(8w12, 32w4096);
                        16w14 : answer_set_receiver_0(8w13, 32w8192);
                        16w15 : answer_set_receiver_0(8w14, 32w16384);
                        16w16 : answer_set_receiver_0(8w15, 32w32768);
        }
        size = 32;
    }
    @name("SereneEgress.answer.to_member") action answer_to_member_0(@name("mac") mac_address_t mac_2, @name("ip") ipv4_address_t ip, @name("udp_port") bit<16> udp_port, @name("switch_mac") mac_address_t switch_mac, @name("switch_ip") ipv4_address_t switch_ip) {
        hdr.ethernet.destination = mac_2;
        hdr.ethernet.source = switch_mac;
        hdr.ipv4.source = switch_ip;
        hdr.ipv4.destination = ip;
        hdr.ipv4.ttl = 8w64;
        hdr.udp.source_port = 16w24142;
        hdr.udp.destination_port = udp_port;
        hdr.udp.checksum = 16w0;
    }
    @name("SereneEgress.answer.nobody") action answer_nobody_0() {
        eg_dprsr_md.drop_ctl = 3w1;
    }
    @name("SereneEgress.answer.address") table answer_address {
        key = {
            hdr.serene.job: exact @name("job");
            meta.receiver : exact @name("worker");
        }
        actions = {
            answer_to_member_0();
            answer_nobody_0();
        }
        const default_action = answer_nobody_0();
        size = 256;
    }
    @name("SereneEgress.answer.compare") action answer_compare_0() {
        meta.to_other = meta.receiver ^ hdr.serene.worker;
        meta.released = meta.receiver_bit & hdr.called.waiting;
    }
    @name("SereneEgress.answer.welcome") action answer_welcome_0() {
        hdr.serene.op = op_t.WELCOME;
    }
    @name("SereneEgress.answer.who") Hash<bit<8>>(HashAlgorithm_t.IDENTITY) answer_who;
    @name("SereneEgress.answer.answer") action answer_answer_0() {
        hdr.serene.op = op_t.ANSWER;
        answer_index = answer_who.get<tuple<bit<3>, bit<5>>>({ hdr.serene.job[2:0], meta.receiver[4:0] });
        answer_answers.count(answer_index);
    }
    @name("SereneEgress.answer.release") action answer_release_0() {
        hdr.serene.op = op_t.ANSWER;
        hdr.serene.seq = 32w0;
        answer_index_0 = answer_who.get<tuple<bit<3>, bit<5>>>({ hdr.serene.job[2:0], meta.receiver[4:0] });
        answer_releases.count(answer_index_0);
    }
    @name("SereneEgress.answer.nudge") action answer_nudge_0() {
        hdr.serene.op = op_t.NUDGE;
        hdr.serene.seq = 32w0;
        hdr.serene.total = 32w0;
        hdr.udp.length = 16w48;
        hdr.ipv4.total_length = 16w68;
        answer_index_1 = answer_who.get<tuple<bit<3>, bit<5>>>({ hdr.serene.job[2:0], meta.receiver[4:0] });
        answer_nudges.count(answer_index_1);
    }
    @name("SereneEgress.answer.drop") action answer_drop_0() {
        eg_dprsr_md.drop_ctl = 3w1;
    }
    @name("SereneEgress.answer.set_worker") action answer_set_worker_0() {
        hdr.serene.worker = meta.receiver;
    }
    @name("SereneEgress.say_port") action say_port() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = hdr.bridge.ingress_port;
        hdr.packet_in.padding = 7w0;
    }
    @name("SereneEgress.drop") action drop() {
        eg_dprsr_md.drop_ctl = 3w1;
    }
    apply {
        if (hdr.bridge.purpose == purpose_t.NONE) {
            if (eg_intr_md.egress_port == 9w0) {
                say_port();
            }
        } else if (hdr.bridge.purpose == purpose_t.BETWEEN_HOSTS) {
            if (eg_intr_md.egress_port == hdr.bridge.ingress_port) {
                drop();
            }
        } else {
            answer_receiver.apply();
            answer_compare_0();
            answer_address.apply();
            answer_set_worker_0();
            if (hdr.bridge.purpose == purpose_t.WELCOME) {
                answer_welcome_0();
            } else if (meta.to_other != 8w0 && meta.released == 32w0) {
                answer_drop_0();
            } else if (hdr.bridge.purpose == purpose_t.NUDGE) {
                answer_nudge_0();
            } else if (meta.to_other == 8w0) {
                answer_answer_0();
            } else {
                answer_release_0();
            }
        }
    }
}

Pipeline<headers_t, metadata_t, headers_t, egress_metadata_t>(SereneParser(), SereneIngress(), SereneDeparser(), SereneEgressParser(), SereneEgress(), SereneEgressDeparser()) pipe;
Switch<headers_t, metadata_t, headers_t, egress_metadata_t, _, _, _, _, _, _, _, _, _, _, _, _>(pipe) main;
