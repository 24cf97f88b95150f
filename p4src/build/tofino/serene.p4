# 0 "p4src/tna/serene.p4"
# 0 "<built-in>"
# 0 "<command-line>"
# 1 "p4src/tna/serene.p4"


# 1 "/root/build/p4c/p4include/core.p4" 1
# 14 "/root/build/p4c/p4include/core.p4"
error {
    NoError,
    PacketTooShort,
    NoMatch,
    StackOutOfBounds,
    HeaderTooShort,
    ParserTimeout,
    ParserInvalidArgument

}

extern packet_in {



    void extract<T>(out T hdr);




    void extract<T>(out T variableSizeHeader,
                    in bit<32> variableFieldSizeInBits);



    T lookahead<T>();

    void advance(in bit<32> sizeInBits);


    bit<32> length();
}

extern packet_out {



    void emit<T>(in T hdr);
}




extern void verify(in bool check, in error toSignal);


@noWarn("unused")
action NoAction() {}




match_kind {

    exact,

    ternary,

    lpm
}







extern bool static_assert(bool check, string message);


extern bool static_assert(bool check);
# 4 "p4src/tna/serene.p4" 2
# 1 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tna.p4" 1
# 24 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tna.p4"
# 1 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_specs.p4" 1
# 41 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_specs.p4"
@noWarn("unused")
typedef bit<9> PortId_t;

@noWarn("unused")
typedef bit<16> MulticastGroupId_t;

@noWarn("unused")
typedef bit<5> QueueId_t;

@noWarn("unused")
typedef bit<3> MirrorType_t;

@noWarn("unused")
typedef bit<10> MirrorId_t;

@noWarn("unused")
typedef bit<3> ResubmitType_t;

@noWarn("unused")
typedef bit<3> DigestType_t;

@noWarn("unused")
typedef bit<16> ReplicationId_t;

@noWarn("unused")
typedef bit<16> L1ExclusionId_t;

@noWarn("unused")
typedef bit<9> L2ExclusionId_t;

@noWarn("unused")
typedef error ParserError_t;


@noWarn("unused")
const bit<32> PORT_METADATA_SIZE = 32w64;
# 25 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tna.p4" 2






# 1 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_arch.p4" 1
# 35 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_arch.p4"
# 1 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4" 1
# 46 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
@noWarn("unused")
const bit<16> PARSER_ERROR_OK = 16w0x0000;
@noWarn("unused")
const bit<16> PARSER_ERROR_NO_MATCH = 16w0x0001;
@noWarn("unused")
const bit<16> PARSER_ERROR_PARTIAL_HDR = 16w0x0002;
@noWarn("unused")
const bit<16> PARSER_ERROR_CTR_RANGE = 16w0x0004;
@noWarn("unused")
const bit<16> PARSER_ERROR_TIMEOUT_USER = 16w0x0008;
@noWarn("unused")
const bit<16> PARSER_ERROR_TIMEOUT_HW = 16w0x0010;
@noWarn("unused")
const bit<16> PARSER_ERROR_SRC_EXT = 16w0x0020;
@noWarn("unused")
const bit<16> PARSER_ERROR_DST_CONT = 16w0x0040;
@noWarn("unused")
const bit<16> PARSER_ERROR_PHV_OWNER = 16w0x0080;
@noWarn("unused")
const bit<16> PARSER_ERROR_MULTIWRITE = 16w0x0100;
@noWarn("unused")
const bit<16> PARSER_ERROR_ARAM_MBE = 16w0x0400;
@noWarn("unused")
const bit<16> PARSER_ERROR_FCS = 16w0x0800;


enum MeterType_t { PACKETS, BYTES }

enum bit<8> MeterColor_t { GREEN = 8w0, YELLOW = 8w1, RED = 8w3 }


enum CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}


enum SelectorMode_t { FAIR, RESILIENT }

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

match_kind {



    range,
    selector,
    atcam_partition_index
}

error {






    CounterRange,
    Timeout,
    PhvOwner,
    MultiWrite,
    IbufOverflow,
    IbufUnderflow
}




@__intrinsic_metadata
header ingress_intrinsic_metadata_t {
    bit<1> resubmit_flag;

    @padding bit<1> _pad1;

    bit<2> packet_version;

    @padding bit<(4 - 9 % 8)> _pad2;

    PortId_t ingress_port;

    bit<48> ingress_mac_tstamp;

}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;


    bit<1> bypass_egress;


    bit<1> deflect_on_drop;



    bit<3> ingress_cos;



    QueueId_t qid;


    bit<3> icos_for_copy_to_cpu;



    bit<1> copy_to_cpu;

    bit<2> packet_color;



    bit<1> disable_ucast_cutthru;


    bit<1> enable_mcast_cutthru;


    MulticastGroupId_t mcast_grp_a;



    MulticastGroupId_t mcast_grp_b;


    bit<13> level1_mcast_hash;





    bit<13> level2_mcast_hash;





    L1ExclusionId_t level1_exclusion_id;



    L2ExclusionId_t level2_exclusion_id;



    bit<16> rid;
}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;


    bit<32> global_ver;


    bit<16> parser_err;

}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {

    bit<3> drop_ctl;




    DigestType_t digest_type;

    ResubmitType_t resubmit_type;

    MirrorType_t mirror_type;

}




@__intrinsic_metadata
header egress_intrinsic_metadata_t {
    @padding bit<(8 - 9 % 8)> _pad0;

    PortId_t egress_port;


    @padding bit<5> _pad1;

    bit<19> enq_qdepth;


    @padding bit<6> _pad2;

    bit<2> enq_congest_stat;


    @padding bit<14> _pad3;
    bit<18> enq_tstamp;


    @padding bit<5> _pad4;

    bit<19> deq_qdepth;


    @padding bit<6> _pad5;

    bit<2> deq_congest_stat;


    bit<8> app_pool_congest_stat;



    @padding bit<14> _pad6;
    bit<18> deq_timedelta;


    bit<16> egress_rid;


    @padding bit<7> _pad7;

    bit<1> egress_rid_first;


    @padding bit<(8 - 5 % 8)> _pad8;

    QueueId_t egress_qid;


    @padding bit<5> _pad9;

    bit<3> egress_cos;

    @padding bit<7> _pad10;

    bit<1> deflection_flag;


    bit<16> pkt_length;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;


    bit<32> global_ver;


    bit<16> parser_err;

}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;





    MirrorType_t mirror_type;

    bit<1> coalesce_flush;

    bit<7> coalesce_length;


}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;



    bit<1> update_delay_on_tx;
# 347 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
}
# 362 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
header pktgen_timer_header_t {
    @padding bit<3> _pad1;
    bit<2> pipe_id;
    bit<3> app_id;
    @padding bit<8> _pad2;

    bit<16> batch_id;


    bit<16> packet_id;

}

header pktgen_port_down_header_t {
    @padding bit<3> _pad1;
    bit<2> pipe_id;
    bit<3> app_id;
    @padding bit<(16 - 9 % 8)> _pad2;
    PortId_t port_num;

    bit<16> packet_id;

}

header pktgen_recirc_header_t {
    @padding bit<3> _pad1;
    bit<2> pipe_id;
    bit<3> app_id;
    bit<24> key;

    bit<16> packet_id;

}





header ptp_metadata_t {
    bit<8> udp_cksum_byte_offset;



    bit<8> cf_byte_offset;



    bit<48> updated_cf;

}
# 422 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
extern Checksum {

    Checksum();




    void add<T>(in T data);




    void subtract<T>(in T data);



    bool verify();







    void subtract_all_and_deposit<T>(out T residual);



    bit<16> get();




    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}
# 465 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
extern ParserCounter {

    ParserCounter();


    void set<T>(in T value);






    void set<T>(in T field,
                in bit<8> max,
                in bit<8> rotate,
                in bit<3> mask,
                in bit<8> add);


    bool is_zero();


    bool is_negative();



    void increment(in bit<8> value);



    void decrement(in bit<8> value);
}
# 505 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
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





extern T max<T>(in T t1, in T t2);

extern T min<T>(in T t1, in T t2);

extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);

extern void invalidate<T>(in T field);

extern bool is_validated<T>(in T field);


extern T port_metadata_unpack<T>(packet_in pkt);

extern bit<32> sizeInBits<H>(in H h);

extern bit<32> sizeInBytes<H>(in H h);



@noWarn("unused")
extern Counter<W, I> {




    Counter(bit<32> size, CounterType_t type);





    void count(in I index, @optional in bit<32> adjust_byte_count);
}


@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type);
    void count(@optional in bit<32> adjust_byte_count);
}


extern Meter<I> {
    Meter(bit<32> size, MeterType_t type);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}


extern DirectMeter {
    DirectMeter(MeterType_t type);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green);
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
}


extern DirectRegister<T> {


    DirectRegister();



    DirectRegister(T initial_value);


    T read();


    T write(in T value);
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
};

extern MathUnit<T> {

    MathUnit(bool invert, int<2> shift, int<6> scale,

             tuple< bit<8>, bit<8>, bit<8>, bit<8>,
                    bit<8>, bit<8>, bit<8>, bit<8>,
                    bit<8>, bit<8>, bit<8>, bit<8>,
                    bit<8>, bit<8>, bit<8>, bit<8> > data);
    MathUnit(MathOp_t op, int factor);
    MathUnit(MathOp_t op, int A, int B);
    T execute(in T x);
};



@noWarn("unused")
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);

    U execute(in I index);
# 714 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
    U execute_log();





    @synchronous(execute, execute_log)
    abstract void apply(inout T value, @optional out U rv);

    U predicate(@optional in bool cmplo,
                @optional in bool cmphi);
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);

    U execute();
# 742 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_base.p4"
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv);

    U predicate(@optional in bool cmplo,
                @optional in bool cmphi);
}

extern ActionProfile {

    ActionProfile(bit<32> size);
}

extern ActionSelector {

    ActionSelector(ActionProfile action_profile,
                   Hash<_> hash,
                   SelectorMode_t mode,
                   bit<32> max_group_size,
                   bit<32> num_groups);


    ActionSelector(ActionProfile action_profile,
                   Hash<_> hash,
                   SelectorMode_t mode,
                   Register<bit<1>, _> reg,
                   bit<32> max_group_size,
                   bit<32> num_groups);


    @deprecated("ActionSelector must be specified with an associated ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);

    @deprecated("ActionSelector must be specified with an associated ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

extern SelectorAction {
    SelectorAction(ActionSelector sel);
    bit<1> execute(@optional in bit<32> index);
    @synchronous(execute)
    abstract void apply(inout bit<1> value, @optional out bit<1> rv);
}





extern Mirror {

    @deprecated("Mirror must be specified with the value of the mirror_type instrinsic metadata")
    Mirror();


    Mirror(MirrorType_t mirror_type);


    void emit(in MirrorId_t session_id);



    void emit<T>(in MirrorId_t session_id, in T hdr);
}





extern Resubmit {

    @deprecated("Resubmit must be specified with the value of the resubmit_type instrinsic metadata")
    Resubmit();


    Resubmit(ResubmitType_t resubmit_type);


    void emit();



    void emit<T>(in T hdr);
}

extern Digest<T> {

    @deprecated("Digest must be specified with the value of the digest_type instrinsic metadata")
    Digest();


    Digest(DigestType_t digest_type);




    void pack(in T data);
}






extern Atcam {

    Atcam(@optional bit<32> number_partitions);
}




extern Alpm {

    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition,
         @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}
# 36 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tofino1_arch.p4" 2




parser IngressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M ig_md,
    @optional out ingress_intrinsic_metadata_t ig_intr_md,
    @optional out ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional out ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr);

parser EgressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M eg_md,
    @optional out egress_intrinsic_metadata_t eg_intr_md,
    @optional out egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional out egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr);

control IngressT<H, M>(
    inout H hdr,
    inout M ig_md,
    @optional in ingress_intrinsic_metadata_t ig_intr_md,
    @optional in ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr,
    @optional inout ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional inout ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm);

control EgressT<H, M>(
    inout H hdr,
    inout M eg_md,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional inout egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional inout egress_intrinsic_metadata_for_output_port_t eg_intr_md_for_oport);

control IngressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    @optional in ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional in ingress_intrinsic_metadata_t ig_intr_md);

control EgressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    @optional in egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr);

package Pipeline<IH, IM, EH, EM>(
    IngressParserT<IH, IM> ingress_parser,
    IngressT<IH, IM> ingress,
    IngressDeparserT<IH, IM> ingress_deparser,
    EgressParserT<EH, EM> egress_parser,
    EgressT<EH, EM> egress,
    EgressDeparserT<EH, EM> egress_deparser);

@pkginfo(arch="TNA", version="2.0.1")
@noWarn("unused")
package Switch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1,
               IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    Pipeline<IH0, IM0, EH0, EM0> pipe0,
    @optional Pipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional Pipeline<IH2, IM2, EH2, EM2> pipe2,
    @optional Pipeline<IH3, IM3, EH3, EM3> pipe3);

package IngressParsers<H, M>(
    IngressParserT<H, M> prsr0,
    @optional IngressParserT<H, M> prsr1,
    @optional IngressParserT<H, M> prsr2,
    @optional IngressParserT<H, M> prsr3,
    @optional IngressParserT<H, M> prsr4,
    @optional IngressParserT<H, M> prsr5,
    @optional IngressParserT<H, M> prsr6,
    @optional IngressParserT<H, M> prsr7,
    @optional IngressParserT<H, M> prsr8,
    @optional IngressParserT<H, M> prsr9,
    @optional IngressParserT<H, M> prsr10,
    @optional IngressParserT<H, M> prsr11,
    @optional IngressParserT<H, M> prsr12,
    @optional IngressParserT<H, M> prsr13,
    @optional IngressParserT<H, M> prsr14,
    @optional IngressParserT<H, M> prsr15,
    @optional IngressParserT<H, M> prsr16,
    @optional IngressParserT<H, M> prsr17);

package EgressParsers<H, M>(
    EgressParserT<H, M> prsr0,
    @optional EgressParserT<H, M> prsr1,
    @optional EgressParserT<H, M> prsr2,
    @optional EgressParserT<H, M> prsr3,
    @optional EgressParserT<H, M> prsr4,
    @optional EgressParserT<H, M> prsr5,
    @optional EgressParserT<H, M> prsr6,
    @optional EgressParserT<H, M> prsr7,
    @optional EgressParserT<H, M> prsr8,
    @optional EgressParserT<H, M> prsr9,
    @optional EgressParserT<H, M> prsr10,
    @optional EgressParserT<H, M> prsr11,
    @optional EgressParserT<H, M> prsr12,
    @optional EgressParserT<H, M> prsr13,
    @optional EgressParserT<H, M> prsr14,
    @optional EgressParserT<H, M> prsr15,
    @optional EgressParserT<H, M> prsr16,
    @optional EgressParserT<H, M> prsr17);

package MultiParserPipeline<IH, IM, EH, EM>(
    IngressParsers<IH, IM> ig_prsr,
    IngressT<IH, IM> ingress,
    IngressDeparserT<IH, IM> ingress_deparser,
    EgressParsers<EH, EM> eg_prsr,
    EgressT<EH, EM> egress,
    EgressDeparserT<EH, EM> egress_deparser);

@pkginfo(arch="TNA", version="2.0.1")
@noWarn("unused")
package MultiParserSwitch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1,
                          IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    MultiParserPipeline<IH0, IM0, EH0, EM0> pipe0,
    @optional MultiParserPipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional MultiParserPipeline<IH2, IM2, EH2, EM2> pipe2,
    @optional MultiParserPipeline<IH3, IM3, EH3, EM3> pipe3);
# 32 "/root/build/p4c/backends/tofino/bf-p4c/p4include/tna.p4" 2
# 5 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/headers.p4" 1





# 1 "p4src/tna/../include/headers.p4" 1




# 1 "p4src/tna/../include/types.p4" 1




# 1 "p4src/tna/../include/sizes.p4" 1




const bit<32> MAX_JOBS = 8;



const bit<32> RING = 16;
const bit<32> STALENESS_CLASSES = 16;
const bit<8> UNBOUNDED = 255;

const bit<16> SERENE_UDP_PORT = 24142;
const bit<8> PROTOCOL_VERSION = 1;


const bit<16> FLOOD_GROUP = 1;
const bit<16> JOB_GROUPS = 16;



# 1 "p4src/tna/../include/../tna/sizes.p4" 1
# 51 "p4src/tna/../include/../tna/sizes.p4"
const bit<32> MAX_WORKERS = 1 << 4;
const bit<32> SLOTS = 1 << 12;

const bit<9> CPU_PORT = 192;
const bit<9> LOOP_PORT = 68;
# 23 "p4src/tna/../include/sizes.p4" 2
# 6 "p4src/tna/../include/types.p4" 2

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
typedef bit<(1 * 32)> lanes_t;


enum bit<8> op_t {
    HELLO = 0x01,
    PUSH = 0x02,
    PULL = 0x03,
    REPORT = 0x04,
    LEAVE = 0x05,
    WELCOME = 0x81,
    ANSWER = 0x82,
    NUDGE = 0x83,
    REFUSED = 0x84,
    BYE = 0x85
}

enum bit<8> read_mode_t {
    LATEST = 0,
    SNAPSHOT = 1
}
# 6 "p4src/tna/../include/headers.p4" 2

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_t {
    mac_address_t destination;
    mac_address_t source;
    bit<16> ether_type;
}

header arp_t {
    bit<16> hardware_type;
    bit<16> protocol_type;
    bit<8> hardware_length;
    bit<8> protocol_length;
    bit<16> operation;
    mac_address_t sender_mac;
    ipv4_address_t sender_ip;
    mac_address_t target_mac;
    ipv4_address_t target_ip;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
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
    bit<8> version;
    op_t op;
    job_t job;
    worker_t worker;
    session_t session;
    epoch_t epoch;
    round_t round;
    seq_t seq;
    slot_t slot;
    total_t total;
    seq_t seen;
    worker_bitmap_t sync_mask;
    bit<8> staleness;
    bit<8> quorum;
    read_mode_t read_mode;
    bit<8> reserved;
}

header membership_t {
    bit<32> vector_length;
    bit<32> slots;
    bit<32> scale;
    bit<16> lanes;
    bit<8> workers;
    bit<8> incarnation;
}


header values_t {
    lanes_t lanes_0; lanes_t lanes_1; lanes_t lanes_2; lanes_t lanes_3; lanes_t lanes_4; lanes_t lanes_5; lanes_t lanes_6; lanes_t lanes_7; lanes_t lanes_8; lanes_t lanes_9; lanes_t lanes_10; lanes_t lanes_11; lanes_t lanes_12; lanes_t lanes_13; lanes_t lanes_14; lanes_t lanes_15; lanes_t lanes_16; lanes_t lanes_17; lanes_t lanes_18; lanes_t lanes_19; lanes_t lanes_20; lanes_t lanes_21; lanes_t lanes_22; lanes_t lanes_23; lanes_t lanes_24; lanes_t lanes_25; lanes_t lanes_26; lanes_t lanes_27; lanes_t lanes_28; lanes_t lanes_29; lanes_t lanes_30; lanes_t lanes_31;
}



const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
const bit<16> SERENE_BYTES = 40;
const bit<16> MEMBERSHIP_BYTES = 16;
const bit<16> VALUES_BYTES = 32 * 1 * 4;
# 7 "p4src/tna/headers.p4" 2

@controller_header("packet_in")
header packet_in_t {
    bit<7> padding;
    bit<9> ingress_port;
}

@controller_header("packet_out")
header packet_out_t {
    bit<7> padding;
    bit<9> egress_port;
}


enum bit<8> errand_t {
    FORWARD = 0,
    FLOOD = 1,
    WELCOME = 2,
    ANSWER = 3,
    RELEASE = 4,
    NUDGE = 5
}


header bridge_t {
    errand_t errand;
    bit<7> padding;
    bit<9> ingress_port;
    worker_bitmap_t waiting;
}

struct headers_t {
    bridge_t bridge;
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    arp_t arp;
    ipv4_t ipv4;
    udp_t udp;
    serene_t serene;
    membership_t membership;
    values_t values;
}


enum bit<8> request_t {
    MALFORMED = 0,
    BAD_CHECKSUM = 1,
    WRONG_SLOT = 2,
    REPORT = 3,
    HELLO = 4,
    PULL = 8,
    PUSH = 9,
    WRONG_ROUND = 10,
    COMPLETION = 12
}
# 76 "p4src/tna/headers.p4"
enum bit<8> course_t {
    NONE = 0,
    ASTRAY = 1,
    READ = 2,
    OPENING = 3,
    FREE = 4,
    GO = 5,
    WAIT = 6,
    COMPLETED = 8,
    OVERTAKEN = 9
}



enum bit<8> lanes_do_t {
    NOTHING = 0,
    ADD = 1,
    ADD_READ_SNAPSHOT = 2,
    OPEN = 3,
    STORE = 4
}


struct policy_t {
    session_t session;
    epoch_t epoch;
    worker_bitmap_t sync_mask;
    bit<8> staleness;
    bit<8> quorum;
    read_mode_t read_mode;
}

struct job_parameters_t {
    bit<32> vector_length;
    bit<32> slots;
    bit<32> scale;
    bit<8> workers;
    bit<8> incarnation;
}


struct metadata_t {
    bool checksum_error;
    request_t request;
    policy_t policy;
    job_parameters_t job;


    bit<1> member;
    bit<1> known_job;
    bit<1> known_policy;
    bit<1> answered;
    bit<16> group;
    slot_t slot;
    slot_t room;
    session_t session_gap;
    epoch_t epoch_gap;
    bit<16> other_bytes;


    worker_bitmap_t sender;
    bit<32> era;
    round_t limit;
    bit<32> bound;
    bit<32> mark;
    bit<32> target;
    bit<1> current;
    bit<1> counted;
    bit<8> age_of_slot;
    bit<8> ahead;
    bit<8> behind;
    course_t course;
    lanes_do_t lanes_do;
    seq_t known;
    seq_t seen;
    round_t base;
    round_t before_base;
    bit<32> arrived;
    bit<32> lacking;
    worker_bitmap_t waiting;
    total_t unread;
    bit<4> rounds_old;
}

struct egress_metadata_t {
    worker_t receiver;
    worker_bitmap_t receiver_bit;
    worker_bitmap_t released;
    worker_t to_other;
    bit<1> serene;
}




struct learned_source_t {
    mac_address_t source;
    bit<9> port;
}
# 6 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/checksum.p4" 1
# 7 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/forwarding.p4" 1



const DigestType_t LEARN = 1;

control Forwarding(inout headers_t hdr,
                   inout metadata_t meta,
                   in ingress_intrinsic_metadata_t ig_intr_md,
                   inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                   inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    action learn() {
        ig_dprsr_md.digest_type = LEARN;
    }

    table known_source {
        key = {
            hdr.ethernet.source: exact @name("source");
            ig_intr_md.ingress_port: exact @name("port");
        }
        actions = { NoAction; learn; }
        const default_action = learn();
        size = 1024;
    }

    action flood() {
        hdr.bridge.errand = errand_t.FLOOD;
        ig_tm_md.mcast_grp_a = FLOOD_GROUP;
    }

    action to_port(bit<9> port) {
        ig_tm_md.ucast_egress_port = port;
    }

    table forward {
        key = { hdr.ethernet.destination: exact @name("destination"); }
        actions = { to_port; flood; }
        const default_action = flood();
        size = 1024;
    }

    action answer_arp(mac_address_t mac) {
        hdr.ethernet.destination = hdr.arp.sender_mac;
        hdr.ethernet.source = mac;
        ipv4_address_t asked = hdr.arp.target_ip;
        hdr.arp.operation = 2;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = asked;
        meta.answered = 1;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    table switch_address {
        key = { hdr.arp.target_ip: exact @name("ip"); }
        actions = { answer_arp; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        known_source.apply();
        if (hdr.arp.isValid() && hdr.arp.operation == 1) {
            switch_address.apply();
        }
        if (meta.answered == 0) {
            forward.apply();
        }
    }
}
# 8 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/parser.p4" 1



parser SereneParser(packet_in packet,
                    out headers_t hdr,
                    out metadata_t meta,
                    out ingress_intrinsic_metadata_t ig_intr_md) {
    Checksum() ipv4_checksum;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.checksum_error = false;
        meta.request = request_t.MALFORMED;
        meta.member = 0;
        meta.known_job = 0;
        meta.known_policy = 0;
        meta.answered = 0;
        meta.current = 0;
        meta.counted = 0;
        meta.ahead = 0;
        meta.behind = 0;
        meta.age_of_slot = 0;
        meta.course = course_t.NONE;
        meta.lanes_do = lanes_do_t.NOTHING;
        meta.lacking = 1;
        meta.waiting = 0;
        transition select(ig_intr_md.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_ARP: parse_arp;
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        meta.checksum_error = ipv4_checksum.verify();
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags[0:0], hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination_port) {
            SERENE_UDP_PORT: parse_serene;
            default: accept;
        }
    }

    state parse_serene {
        packet.extract(hdr.serene);
        transition select(hdr.serene.op) {
            op_t.HELLO: parse_membership;
            op_t.PUSH: parse_values;
            op_t.PULL: parse_values;
            default: accept;
        }
    }

    state parse_membership {
        packet.extract(hdr.membership);
        transition accept;
    }

    state parse_values {
        packet.extract(hdr.values);
        transition accept;
    }
}

control SereneDeparser(packet_out packet,
                       inout headers_t hdr,
                       in metadata_t meta,
                       in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                       in ingress_intrinsic_metadata_t ig_intr_md) {
    Digest<learned_source_t>() learned;

    apply {
        if (ig_dprsr_md.digest_type == LEARN) {
            learned.pack({ hdr.ethernet.source, ig_intr_md.ingress_port });
        }
        packet.emit(hdr.bridge);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.serene);
        packet.emit(hdr.membership);
        packet.emit(hdr.values);
    }
}


parser SereneEgressParser(packet_in packet,
                          out headers_t hdr,
                          out egress_metadata_t meta,
                          out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        meta.serene = 0;
        transition select(hdr.bridge.errand) {
            errand_t.FORWARD: accept;
            errand_t.FLOOD: accept;
            default: parse_answer;
        }
    }

    state parse_answer {
        meta.serene = 1;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.serene);
        transition accept;
    }
}

control SereneEgressDeparser(packet_out packet,
                             inout headers_t hdr,
                             in egress_metadata_t meta,
                             in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() ipv4_checksum;

    apply {
        if (meta.serene == 1) { hdr.ipv4.checksum = ipv4_checksum.update({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination }); }
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.serene);
    }
}
# 9 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/admission.p4" 1






control Admission(inout headers_t hdr,
                  inout metadata_t meta,
                  in ingress_intrinsic_metadata_t ig_intr_md,
                  in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                  inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    action classify(request_t request) {
        meta.request = request;
    }
# 23 "p4src/tna/admission.p4"
    table verdict {
        key = {
            meta.checksum_error: ternary;
            ig_prsr_md.parser_err: ternary;
            ig_intr_md.ingress_port: ternary;
            hdr.serene.version: ternary;
            hdr.serene.op: ternary;
            hdr.udp.length: ternary;
            hdr.ipv4.total_length: ternary;
            hdr.serene.job: ternary;
            hdr.serene.worker: ternary;
            hdr.serene.slot: ternary;
            hdr.serene.round: ternary;
        }
        actions = { classify; }
        const default_action = classify(request_t.MALFORMED);
        const entries = {
            (true, _, _, _, _, _, _, _, _, _, _): classify(request_t.BAD_CHECKSUM);
            (false, 0, LOOP_PORT, PROTOCOL_VERSION, op_t.PUSH, (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES)), (IPV4_BYTES + (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES))),
             (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), (32w0 &&& ~(slot_t)(SLOTS - 1)), (32w0 &&& 0xff000000)): classify(request_t.COMPLETION);
            (false, 0, _, PROTOCOL_VERSION, op_t.PUSH, (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES)), (IPV4_BYTES + (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES))),
             (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), (32w0 &&& ~(slot_t)(SLOTS - 1)), (32w0 &&& 0xff000000)): classify(request_t.PUSH);
            (false, 0, _, PROTOCOL_VERSION, op_t.PULL, (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES)), (IPV4_BYTES + (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES))),
             (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), (32w0 &&& ~(slot_t)(SLOTS - 1)), _): classify(request_t.PULL);
            (false, 0, _, PROTOCOL_VERSION, op_t.PUSH, (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES)), (IPV4_BYTES + (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES))),
             (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), (32w0 &&& ~(slot_t)(SLOTS - 1)), _): classify(request_t.WRONG_ROUND);
            (false, 0, _, PROTOCOL_VERSION, op_t.PUSH, (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES)), (IPV4_BYTES + (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES))),
             (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), _, _): classify(request_t.WRONG_SLOT);
            (false, 0, _, PROTOCOL_VERSION, op_t.PULL, (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES)), (IPV4_BYTES + (UDP_BYTES + SERENE_BYTES + (VALUES_BYTES))),
             (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), _, _): classify(request_t.WRONG_SLOT);
            (false, 0, _, PROTOCOL_VERSION, op_t.HELLO, (UDP_BYTES + SERENE_BYTES + (MEMBERSHIP_BYTES)), (IPV4_BYTES + (UDP_BYTES + SERENE_BYTES + (MEMBERSHIP_BYTES))),
             (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), _, _): classify(request_t.HELLO);
            (false, 0, _, PROTOCOL_VERSION, op_t.REPORT, _, _, (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), _, _): classify(request_t.REPORT);
            (false, 0, _, PROTOCOL_VERSION, op_t.LEAVE, _, _, (8w0 &&& ~(job_t)(MAX_JOBS - 1)), (8w0 &&& ~(worker_t)(MAX_WORKERS - 1)), _, _): classify(request_t.REPORT);
        }
        size = 16;
    }

    action admit() {
        meta.member = 1;
    }

    table member {
        key = {
            ig_intr_md.ingress_port: exact @name("port");
            hdr.ethernet.source: exact @name("mac");
            hdr.ipv4.source: exact @name("ip");
            hdr.udp.source_port: exact @name("udp_port");
            hdr.serene.job: exact @name("job");
            hdr.serene.worker: exact @name("worker");
        }
        actions = { admit; NoAction; }
        const default_action = NoAction();
        size = 256;
    }


    action set_job(slot_t first_slot, slot_t slots, bit<32> vector_length, bit<32> scale, bit<8> workers,
                   bit<8> incarnation, bit<32> share) {
        meta.known_job = 1;
        meta.slot = hdr.serene.slot + first_slot;
        meta.room = hdr.serene.slot - slots;
        meta.job.vector_length = vector_length;
        meta.job.slots = slots;
        meta.job.scale = scale;
        meta.job.workers = workers;
        meta.job.incarnation = incarnation;
    }

    table job {
        key = { hdr.serene.job: exact @name("job"); }
        actions = { set_job; NoAction; }
        const default_action = NoAction();
        size = 8;
    }


    action set_policy(session_t session, epoch_t epoch, worker_bitmap_t sync_mask, bit<8> staleness,
                      bit<8> quorum, read_mode_t read_mode) {
        meta.known_policy = 1;
        meta.session_gap = hdr.serene.session - session;
        meta.epoch_gap = hdr.serene.epoch - epoch;
        meta.limit = hdr.serene.round - (bit<32>)staleness;
        meta.bound = (bit<32>)staleness;
        meta.target = (bit<32>)quorum;
        meta.policy.session = session;
        meta.policy.epoch = epoch;
        meta.policy.sync_mask = sync_mask;
        meta.policy.staleness = staleness;
        meta.policy.quorum = quorum;
        meta.policy.read_mode = read_mode;
    }

    table policy {
        key = { hdr.serene.job: exact @name("job"); }
        actions = { set_policy; NoAction; }
        const default_action = NoAction();
        size = 8;
    }




    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_malformed; action count_malformed() { dropped_malformed.count(0); }
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_bad_checksum; action count_bad_checksum() { dropped_bad_checksum.count(0); }
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_stranger; action count_stranger() { dropped_stranger.count(0); }
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_no_policy; action count_no_policy() { dropped_no_policy.count(0); }
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_wrong_session; action count_wrong_session() { dropped_wrong_session.count(0); }
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_wrong_slot; action count_wrong_slot() { dropped_wrong_slot.count(0); }


    action to_controller() {
        ig_tm_md.ucast_egress_port = CPU_PORT;
    }

    action subtract_lengths() {
        meta.other_bytes = hdr.ipv4.total_length - hdr.udp.length;
    }


    apply {
        subtract_lengths();
        verdict.apply();
        member.apply();
        job.apply();
        policy.apply();

        if (meta.request == request_t.BAD_CHECKSUM) {
            count_bad_checksum();
        } else if (meta.request == request_t.MALFORMED
                   || (meta.request == request_t.REPORT && meta.other_bytes != IPV4_BYTES)) {
            count_malformed();
        } else if (meta.member == 0 && meta.request != request_t.HELLO && meta.request != request_t.COMPLETION) {
            count_stranger();
        } else if (meta.request == request_t.REPORT || meta.member == 0 && meta.request == request_t.HELLO) {
            to_controller();
        } else if (meta.known_job == 0 || meta.known_policy == 0) {
            count_no_policy();
        } else if (meta.request != request_t.HELLO) {
            if (meta.session_gap != 0) {
                count_wrong_session();
            } else if (meta.request == request_t.WRONG_SLOT || meta.room[31:31] == 0) {
                count_wrong_slot();
            }
        }
    }
}
# 10 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/aggregation.p4" 1





struct lane_t {
    bit<32> sum;
    bit<32> snapshot;
}
# 65 "p4src/tna/aggregation.p4"
control Aggregation(inout headers_t hdr, in metadata_t meta) {



    Register<lane_t, bit<12>>(SLOTS) lanes_of_0; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_0) add_lane_0 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_0; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_0) add_and_read_snapshot_lane_0 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_0; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_0) open_lane_0 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_0) store_lane_0 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_0; } }; action do_add_lane_0() { hdr.values.lanes_0 = add_lane_0.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_0() { hdr.values.lanes_0 = add_and_read_snapshot_lane_0.execute(meta.slot[(12 - 1):0]); } action do_open_lane_0() { hdr.values.lanes_0 = open_lane_0.execute(meta.slot[(12 - 1):0]); } action do_store_lane_0() { store_lane_0.execute(meta.slot[(12 - 1):0]); } table update_lane_0 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_0; do_add_and_read_snapshot_lane_0; do_open_lane_0; do_store_lane_0; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_0(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_0(); lanes_do_t.OPEN: do_open_lane_0(); lanes_do_t.STORE: do_store_lane_0(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_1; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_1) add_lane_1 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_1; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_1) add_and_read_snapshot_lane_1 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_1; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_1) open_lane_1 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_1) store_lane_1 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_1; } }; action do_add_lane_1() { hdr.values.lanes_1 = add_lane_1.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_1() { hdr.values.lanes_1 = add_and_read_snapshot_lane_1.execute(meta.slot[(12 - 1):0]); } action do_open_lane_1() { hdr.values.lanes_1 = open_lane_1.execute(meta.slot[(12 - 1):0]); } action do_store_lane_1() { store_lane_1.execute(meta.slot[(12 - 1):0]); } table update_lane_1 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_1; do_add_and_read_snapshot_lane_1; do_open_lane_1; do_store_lane_1; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_1(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_1(); lanes_do_t.OPEN: do_open_lane_1(); lanes_do_t.STORE: do_store_lane_1(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_2; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_2) add_lane_2 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_2; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_2) add_and_read_snapshot_lane_2 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_2; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_2) open_lane_2 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_2) store_lane_2 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_2; } }; action do_add_lane_2() { hdr.values.lanes_2 = add_lane_2.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_2() { hdr.values.lanes_2 = add_and_read_snapshot_lane_2.execute(meta.slot[(12 - 1):0]); } action do_open_lane_2() { hdr.values.lanes_2 = open_lane_2.execute(meta.slot[(12 - 1):0]); } action do_store_lane_2() { store_lane_2.execute(meta.slot[(12 - 1):0]); } table update_lane_2 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_2; do_add_and_read_snapshot_lane_2; do_open_lane_2; do_store_lane_2; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_2(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_2(); lanes_do_t.OPEN: do_open_lane_2(); lanes_do_t.STORE: do_store_lane_2(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_3; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_3) add_lane_3 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_3; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_3) add_and_read_snapshot_lane_3 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_3; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_3) open_lane_3 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_3) store_lane_3 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_3; } }; action do_add_lane_3() { hdr.values.lanes_3 = add_lane_3.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_3() { hdr.values.lanes_3 = add_and_read_snapshot_lane_3.execute(meta.slot[(12 - 1):0]); } action do_open_lane_3() { hdr.values.lanes_3 = open_lane_3.execute(meta.slot[(12 - 1):0]); } action do_store_lane_3() { store_lane_3.execute(meta.slot[(12 - 1):0]); } table update_lane_3 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_3; do_add_and_read_snapshot_lane_3; do_open_lane_3; do_store_lane_3; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_3(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_3(); lanes_do_t.OPEN: do_open_lane_3(); lanes_do_t.STORE: do_store_lane_3(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_4; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_4) add_lane_4 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_4; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_4) add_and_read_snapshot_lane_4 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_4; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_4) open_lane_4 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_4) store_lane_4 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_4; } }; action do_add_lane_4() { hdr.values.lanes_4 = add_lane_4.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_4() { hdr.values.lanes_4 = add_and_read_snapshot_lane_4.execute(meta.slot[(12 - 1):0]); } action do_open_lane_4() { hdr.values.lanes_4 = open_lane_4.execute(meta.slot[(12 - 1):0]); } action do_store_lane_4() { store_lane_4.execute(meta.slot[(12 - 1):0]); } table update_lane_4 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_4; do_add_and_read_snapshot_lane_4; do_open_lane_4; do_store_lane_4; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_4(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_4(); lanes_do_t.OPEN: do_open_lane_4(); lanes_do_t.STORE: do_store_lane_4(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_5; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_5) add_lane_5 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_5; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_5) add_and_read_snapshot_lane_5 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_5; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_5) open_lane_5 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_5) store_lane_5 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_5; } }; action do_add_lane_5() { hdr.values.lanes_5 = add_lane_5.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_5() { hdr.values.lanes_5 = add_and_read_snapshot_lane_5.execute(meta.slot[(12 - 1):0]); } action do_open_lane_5() { hdr.values.lanes_5 = open_lane_5.execute(meta.slot[(12 - 1):0]); } action do_store_lane_5() { store_lane_5.execute(meta.slot[(12 - 1):0]); } table update_lane_5 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_5; do_add_and_read_snapshot_lane_5; do_open_lane_5; do_store_lane_5; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_5(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_5(); lanes_do_t.OPEN: do_open_lane_5(); lanes_do_t.STORE: do_store_lane_5(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_6; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_6) add_lane_6 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_6; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_6) add_and_read_snapshot_lane_6 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_6; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_6) open_lane_6 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_6) store_lane_6 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_6; } }; action do_add_lane_6() { hdr.values.lanes_6 = add_lane_6.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_6() { hdr.values.lanes_6 = add_and_read_snapshot_lane_6.execute(meta.slot[(12 - 1):0]); } action do_open_lane_6() { hdr.values.lanes_6 = open_lane_6.execute(meta.slot[(12 - 1):0]); } action do_store_lane_6() { store_lane_6.execute(meta.slot[(12 - 1):0]); } table update_lane_6 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_6; do_add_and_read_snapshot_lane_6; do_open_lane_6; do_store_lane_6; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_6(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_6(); lanes_do_t.OPEN: do_open_lane_6(); lanes_do_t.STORE: do_store_lane_6(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_7; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_7) add_lane_7 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_7; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_7) add_and_read_snapshot_lane_7 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_7; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_7) open_lane_7 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_7) store_lane_7 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_7; } }; action do_add_lane_7() { hdr.values.lanes_7 = add_lane_7.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_7() { hdr.values.lanes_7 = add_and_read_snapshot_lane_7.execute(meta.slot[(12 - 1):0]); } action do_open_lane_7() { hdr.values.lanes_7 = open_lane_7.execute(meta.slot[(12 - 1):0]); } action do_store_lane_7() { store_lane_7.execute(meta.slot[(12 - 1):0]); } table update_lane_7 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_7; do_add_and_read_snapshot_lane_7; do_open_lane_7; do_store_lane_7; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_7(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_7(); lanes_do_t.OPEN: do_open_lane_7(); lanes_do_t.STORE: do_store_lane_7(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_8; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_8) add_lane_8 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_8; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_8) add_and_read_snapshot_lane_8 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_8; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_8) open_lane_8 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_8) store_lane_8 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_8; } }; action do_add_lane_8() { hdr.values.lanes_8 = add_lane_8.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_8() { hdr.values.lanes_8 = add_and_read_snapshot_lane_8.execute(meta.slot[(12 - 1):0]); } action do_open_lane_8() { hdr.values.lanes_8 = open_lane_8.execute(meta.slot[(12 - 1):0]); } action do_store_lane_8() { store_lane_8.execute(meta.slot[(12 - 1):0]); } table update_lane_8 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_8; do_add_and_read_snapshot_lane_8; do_open_lane_8; do_store_lane_8; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_8(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_8(); lanes_do_t.OPEN: do_open_lane_8(); lanes_do_t.STORE: do_store_lane_8(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_9; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_9) add_lane_9 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_9; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_9) add_and_read_snapshot_lane_9 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_9; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_9) open_lane_9 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_9) store_lane_9 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_9; } }; action do_add_lane_9() { hdr.values.lanes_9 = add_lane_9.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_9() { hdr.values.lanes_9 = add_and_read_snapshot_lane_9.execute(meta.slot[(12 - 1):0]); } action do_open_lane_9() { hdr.values.lanes_9 = open_lane_9.execute(meta.slot[(12 - 1):0]); } action do_store_lane_9() { store_lane_9.execute(meta.slot[(12 - 1):0]); } table update_lane_9 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_9; do_add_and_read_snapshot_lane_9; do_open_lane_9; do_store_lane_9; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_9(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_9(); lanes_do_t.OPEN: do_open_lane_9(); lanes_do_t.STORE: do_store_lane_9(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_10; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_10) add_lane_10 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_10; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_10) add_and_read_snapshot_lane_10 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_10; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_10) open_lane_10 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_10) store_lane_10 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_10; } }; action do_add_lane_10() { hdr.values.lanes_10 = add_lane_10.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_10() { hdr.values.lanes_10 = add_and_read_snapshot_lane_10.execute(meta.slot[(12 - 1):0]); } action do_open_lane_10() { hdr.values.lanes_10 = open_lane_10.execute(meta.slot[(12 - 1):0]); } action do_store_lane_10() { store_lane_10.execute(meta.slot[(12 - 1):0]); } table update_lane_10 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_10; do_add_and_read_snapshot_lane_10; do_open_lane_10; do_store_lane_10; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_10(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_10(); lanes_do_t.OPEN: do_open_lane_10(); lanes_do_t.STORE: do_store_lane_10(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_11; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_11) add_lane_11 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_11; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_11) add_and_read_snapshot_lane_11 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_11; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_11) open_lane_11 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_11) store_lane_11 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_11; } }; action do_add_lane_11() { hdr.values.lanes_11 = add_lane_11.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_11() { hdr.values.lanes_11 = add_and_read_snapshot_lane_11.execute(meta.slot[(12 - 1):0]); } action do_open_lane_11() { hdr.values.lanes_11 = open_lane_11.execute(meta.slot[(12 - 1):0]); } action do_store_lane_11() { store_lane_11.execute(meta.slot[(12 - 1):0]); } table update_lane_11 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_11; do_add_and_read_snapshot_lane_11; do_open_lane_11; do_store_lane_11; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_11(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_11(); lanes_do_t.OPEN: do_open_lane_11(); lanes_do_t.STORE: do_store_lane_11(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_12; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_12) add_lane_12 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_12; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_12) add_and_read_snapshot_lane_12 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_12; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_12) open_lane_12 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_12) store_lane_12 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_12; } }; action do_add_lane_12() { hdr.values.lanes_12 = add_lane_12.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_12() { hdr.values.lanes_12 = add_and_read_snapshot_lane_12.execute(meta.slot[(12 - 1):0]); } action do_open_lane_12() { hdr.values.lanes_12 = open_lane_12.execute(meta.slot[(12 - 1):0]); } action do_store_lane_12() { store_lane_12.execute(meta.slot[(12 - 1):0]); } table update_lane_12 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_12; do_add_and_read_snapshot_lane_12; do_open_lane_12; do_store_lane_12; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_12(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_12(); lanes_do_t.OPEN: do_open_lane_12(); lanes_do_t.STORE: do_store_lane_12(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_13; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_13) add_lane_13 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_13; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_13) add_and_read_snapshot_lane_13 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_13; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_13) open_lane_13 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_13) store_lane_13 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_13; } }; action do_add_lane_13() { hdr.values.lanes_13 = add_lane_13.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_13() { hdr.values.lanes_13 = add_and_read_snapshot_lane_13.execute(meta.slot[(12 - 1):0]); } action do_open_lane_13() { hdr.values.lanes_13 = open_lane_13.execute(meta.slot[(12 - 1):0]); } action do_store_lane_13() { store_lane_13.execute(meta.slot[(12 - 1):0]); } table update_lane_13 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_13; do_add_and_read_snapshot_lane_13; do_open_lane_13; do_store_lane_13; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_13(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_13(); lanes_do_t.OPEN: do_open_lane_13(); lanes_do_t.STORE: do_store_lane_13(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_14; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_14) add_lane_14 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_14; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_14) add_and_read_snapshot_lane_14 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_14; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_14) open_lane_14 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_14) store_lane_14 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_14; } }; action do_add_lane_14() { hdr.values.lanes_14 = add_lane_14.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_14() { hdr.values.lanes_14 = add_and_read_snapshot_lane_14.execute(meta.slot[(12 - 1):0]); } action do_open_lane_14() { hdr.values.lanes_14 = open_lane_14.execute(meta.slot[(12 - 1):0]); } action do_store_lane_14() { store_lane_14.execute(meta.slot[(12 - 1):0]); } table update_lane_14 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_14; do_add_and_read_snapshot_lane_14; do_open_lane_14; do_store_lane_14; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_14(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_14(); lanes_do_t.OPEN: do_open_lane_14(); lanes_do_t.STORE: do_store_lane_14(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_15; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_15) add_lane_15 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_15; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_15) add_and_read_snapshot_lane_15 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_15; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_15) open_lane_15 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_15) store_lane_15 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_15; } }; action do_add_lane_15() { hdr.values.lanes_15 = add_lane_15.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_15() { hdr.values.lanes_15 = add_and_read_snapshot_lane_15.execute(meta.slot[(12 - 1):0]); } action do_open_lane_15() { hdr.values.lanes_15 = open_lane_15.execute(meta.slot[(12 - 1):0]); } action do_store_lane_15() { store_lane_15.execute(meta.slot[(12 - 1):0]); } table update_lane_15 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_15; do_add_and_read_snapshot_lane_15; do_open_lane_15; do_store_lane_15; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_15(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_15(); lanes_do_t.OPEN: do_open_lane_15(); lanes_do_t.STORE: do_store_lane_15(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_16; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_16) add_lane_16 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_16; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_16) add_and_read_snapshot_lane_16 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_16; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_16) open_lane_16 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_16) store_lane_16 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_16; } }; action do_add_lane_16() { hdr.values.lanes_16 = add_lane_16.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_16() { hdr.values.lanes_16 = add_and_read_snapshot_lane_16.execute(meta.slot[(12 - 1):0]); } action do_open_lane_16() { hdr.values.lanes_16 = open_lane_16.execute(meta.slot[(12 - 1):0]); } action do_store_lane_16() { store_lane_16.execute(meta.slot[(12 - 1):0]); } table update_lane_16 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_16; do_add_and_read_snapshot_lane_16; do_open_lane_16; do_store_lane_16; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_16(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_16(); lanes_do_t.OPEN: do_open_lane_16(); lanes_do_t.STORE: do_store_lane_16(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_17; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_17) add_lane_17 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_17; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_17) add_and_read_snapshot_lane_17 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_17; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_17) open_lane_17 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_17) store_lane_17 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_17; } }; action do_add_lane_17() { hdr.values.lanes_17 = add_lane_17.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_17() { hdr.values.lanes_17 = add_and_read_snapshot_lane_17.execute(meta.slot[(12 - 1):0]); } action do_open_lane_17() { hdr.values.lanes_17 = open_lane_17.execute(meta.slot[(12 - 1):0]); } action do_store_lane_17() { store_lane_17.execute(meta.slot[(12 - 1):0]); } table update_lane_17 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_17; do_add_and_read_snapshot_lane_17; do_open_lane_17; do_store_lane_17; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_17(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_17(); lanes_do_t.OPEN: do_open_lane_17(); lanes_do_t.STORE: do_store_lane_17(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_18; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_18) add_lane_18 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_18; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_18) add_and_read_snapshot_lane_18 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_18; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_18) open_lane_18 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_18) store_lane_18 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_18; } }; action do_add_lane_18() { hdr.values.lanes_18 = add_lane_18.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_18() { hdr.values.lanes_18 = add_and_read_snapshot_lane_18.execute(meta.slot[(12 - 1):0]); } action do_open_lane_18() { hdr.values.lanes_18 = open_lane_18.execute(meta.slot[(12 - 1):0]); } action do_store_lane_18() { store_lane_18.execute(meta.slot[(12 - 1):0]); } table update_lane_18 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_18; do_add_and_read_snapshot_lane_18; do_open_lane_18; do_store_lane_18; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_18(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_18(); lanes_do_t.OPEN: do_open_lane_18(); lanes_do_t.STORE: do_store_lane_18(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_19; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_19) add_lane_19 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_19; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_19) add_and_read_snapshot_lane_19 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_19; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_19) open_lane_19 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_19) store_lane_19 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_19; } }; action do_add_lane_19() { hdr.values.lanes_19 = add_lane_19.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_19() { hdr.values.lanes_19 = add_and_read_snapshot_lane_19.execute(meta.slot[(12 - 1):0]); } action do_open_lane_19() { hdr.values.lanes_19 = open_lane_19.execute(meta.slot[(12 - 1):0]); } action do_store_lane_19() { store_lane_19.execute(meta.slot[(12 - 1):0]); } table update_lane_19 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_19; do_add_and_read_snapshot_lane_19; do_open_lane_19; do_store_lane_19; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_19(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_19(); lanes_do_t.OPEN: do_open_lane_19(); lanes_do_t.STORE: do_store_lane_19(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_20; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_20) add_lane_20 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_20; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_20) add_and_read_snapshot_lane_20 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_20; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_20) open_lane_20 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_20) store_lane_20 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_20; } }; action do_add_lane_20() { hdr.values.lanes_20 = add_lane_20.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_20() { hdr.values.lanes_20 = add_and_read_snapshot_lane_20.execute(meta.slot[(12 - 1):0]); } action do_open_lane_20() { hdr.values.lanes_20 = open_lane_20.execute(meta.slot[(12 - 1):0]); } action do_store_lane_20() { store_lane_20.execute(meta.slot[(12 - 1):0]); } table update_lane_20 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_20; do_add_and_read_snapshot_lane_20; do_open_lane_20; do_store_lane_20; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_20(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_20(); lanes_do_t.OPEN: do_open_lane_20(); lanes_do_t.STORE: do_store_lane_20(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_21; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_21) add_lane_21 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_21; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_21) add_and_read_snapshot_lane_21 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_21; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_21) open_lane_21 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_21) store_lane_21 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_21; } }; action do_add_lane_21() { hdr.values.lanes_21 = add_lane_21.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_21() { hdr.values.lanes_21 = add_and_read_snapshot_lane_21.execute(meta.slot[(12 - 1):0]); } action do_open_lane_21() { hdr.values.lanes_21 = open_lane_21.execute(meta.slot[(12 - 1):0]); } action do_store_lane_21() { store_lane_21.execute(meta.slot[(12 - 1):0]); } table update_lane_21 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_21; do_add_and_read_snapshot_lane_21; do_open_lane_21; do_store_lane_21; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_21(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_21(); lanes_do_t.OPEN: do_open_lane_21(); lanes_do_t.STORE: do_store_lane_21(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_22; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_22) add_lane_22 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_22; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_22) add_and_read_snapshot_lane_22 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_22; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_22) open_lane_22 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_22) store_lane_22 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_22; } }; action do_add_lane_22() { hdr.values.lanes_22 = add_lane_22.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_22() { hdr.values.lanes_22 = add_and_read_snapshot_lane_22.execute(meta.slot[(12 - 1):0]); } action do_open_lane_22() { hdr.values.lanes_22 = open_lane_22.execute(meta.slot[(12 - 1):0]); } action do_store_lane_22() { store_lane_22.execute(meta.slot[(12 - 1):0]); } table update_lane_22 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_22; do_add_and_read_snapshot_lane_22; do_open_lane_22; do_store_lane_22; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_22(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_22(); lanes_do_t.OPEN: do_open_lane_22(); lanes_do_t.STORE: do_store_lane_22(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_23; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_23) add_lane_23 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_23; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_23) add_and_read_snapshot_lane_23 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_23; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_23) open_lane_23 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_23) store_lane_23 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_23; } }; action do_add_lane_23() { hdr.values.lanes_23 = add_lane_23.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_23() { hdr.values.lanes_23 = add_and_read_snapshot_lane_23.execute(meta.slot[(12 - 1):0]); } action do_open_lane_23() { hdr.values.lanes_23 = open_lane_23.execute(meta.slot[(12 - 1):0]); } action do_store_lane_23() { store_lane_23.execute(meta.slot[(12 - 1):0]); } table update_lane_23 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_23; do_add_and_read_snapshot_lane_23; do_open_lane_23; do_store_lane_23; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_23(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_23(); lanes_do_t.OPEN: do_open_lane_23(); lanes_do_t.STORE: do_store_lane_23(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_24; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_24) add_lane_24 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_24; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_24) add_and_read_snapshot_lane_24 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_24; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_24) open_lane_24 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_24) store_lane_24 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_24; } }; action do_add_lane_24() { hdr.values.lanes_24 = add_lane_24.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_24() { hdr.values.lanes_24 = add_and_read_snapshot_lane_24.execute(meta.slot[(12 - 1):0]); } action do_open_lane_24() { hdr.values.lanes_24 = open_lane_24.execute(meta.slot[(12 - 1):0]); } action do_store_lane_24() { store_lane_24.execute(meta.slot[(12 - 1):0]); } table update_lane_24 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_24; do_add_and_read_snapshot_lane_24; do_open_lane_24; do_store_lane_24; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_24(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_24(); lanes_do_t.OPEN: do_open_lane_24(); lanes_do_t.STORE: do_store_lane_24(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_25; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_25) add_lane_25 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_25; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_25) add_and_read_snapshot_lane_25 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_25; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_25) open_lane_25 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_25) store_lane_25 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_25; } }; action do_add_lane_25() { hdr.values.lanes_25 = add_lane_25.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_25() { hdr.values.lanes_25 = add_and_read_snapshot_lane_25.execute(meta.slot[(12 - 1):0]); } action do_open_lane_25() { hdr.values.lanes_25 = open_lane_25.execute(meta.slot[(12 - 1):0]); } action do_store_lane_25() { store_lane_25.execute(meta.slot[(12 - 1):0]); } table update_lane_25 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_25; do_add_and_read_snapshot_lane_25; do_open_lane_25; do_store_lane_25; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_25(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_25(); lanes_do_t.OPEN: do_open_lane_25(); lanes_do_t.STORE: do_store_lane_25(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_26; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_26) add_lane_26 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_26; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_26) add_and_read_snapshot_lane_26 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_26; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_26) open_lane_26 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_26) store_lane_26 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_26; } }; action do_add_lane_26() { hdr.values.lanes_26 = add_lane_26.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_26() { hdr.values.lanes_26 = add_and_read_snapshot_lane_26.execute(meta.slot[(12 - 1):0]); } action do_open_lane_26() { hdr.values.lanes_26 = open_lane_26.execute(meta.slot[(12 - 1):0]); } action do_store_lane_26() { store_lane_26.execute(meta.slot[(12 - 1):0]); } table update_lane_26 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_26; do_add_and_read_snapshot_lane_26; do_open_lane_26; do_store_lane_26; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_26(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_26(); lanes_do_t.OPEN: do_open_lane_26(); lanes_do_t.STORE: do_store_lane_26(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_27; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_27) add_lane_27 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_27; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_27) add_and_read_snapshot_lane_27 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_27; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_27) open_lane_27 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_27) store_lane_27 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_27; } }; action do_add_lane_27() { hdr.values.lanes_27 = add_lane_27.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_27() { hdr.values.lanes_27 = add_and_read_snapshot_lane_27.execute(meta.slot[(12 - 1):0]); } action do_open_lane_27() { hdr.values.lanes_27 = open_lane_27.execute(meta.slot[(12 - 1):0]); } action do_store_lane_27() { store_lane_27.execute(meta.slot[(12 - 1):0]); } table update_lane_27 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_27; do_add_and_read_snapshot_lane_27; do_open_lane_27; do_store_lane_27; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_27(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_27(); lanes_do_t.OPEN: do_open_lane_27(); lanes_do_t.STORE: do_store_lane_27(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_28; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_28) add_lane_28 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_28; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_28) add_and_read_snapshot_lane_28 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_28; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_28) open_lane_28 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_28) store_lane_28 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_28; } }; action do_add_lane_28() { hdr.values.lanes_28 = add_lane_28.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_28() { hdr.values.lanes_28 = add_and_read_snapshot_lane_28.execute(meta.slot[(12 - 1):0]); } action do_open_lane_28() { hdr.values.lanes_28 = open_lane_28.execute(meta.slot[(12 - 1):0]); } action do_store_lane_28() { store_lane_28.execute(meta.slot[(12 - 1):0]); } table update_lane_28 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_28; do_add_and_read_snapshot_lane_28; do_open_lane_28; do_store_lane_28; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_28(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_28(); lanes_do_t.OPEN: do_open_lane_28(); lanes_do_t.STORE: do_store_lane_28(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_29; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_29) add_lane_29 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_29; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_29) add_and_read_snapshot_lane_29 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_29; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_29) open_lane_29 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_29) store_lane_29 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_29; } }; action do_add_lane_29() { hdr.values.lanes_29 = add_lane_29.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_29() { hdr.values.lanes_29 = add_and_read_snapshot_lane_29.execute(meta.slot[(12 - 1):0]); } action do_open_lane_29() { hdr.values.lanes_29 = open_lane_29.execute(meta.slot[(12 - 1):0]); } action do_store_lane_29() { store_lane_29.execute(meta.slot[(12 - 1):0]); } table update_lane_29 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_29; do_add_and_read_snapshot_lane_29; do_open_lane_29; do_store_lane_29; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_29(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_29(); lanes_do_t.OPEN: do_open_lane_29(); lanes_do_t.STORE: do_store_lane_29(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_30; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_30) add_lane_30 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_30; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_30) add_and_read_snapshot_lane_30 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_30; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_30) open_lane_30 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_30) store_lane_30 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_30; } }; action do_add_lane_30() { hdr.values.lanes_30 = add_lane_30.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_30() { hdr.values.lanes_30 = add_and_read_snapshot_lane_30.execute(meta.slot[(12 - 1):0]); } action do_open_lane_30() { hdr.values.lanes_30 = open_lane_30.execute(meta.slot[(12 - 1):0]); } action do_store_lane_30() { store_lane_30.execute(meta.slot[(12 - 1):0]); } table update_lane_30 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_30; do_add_and_read_snapshot_lane_30; do_open_lane_30; do_store_lane_30; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_30(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_30(); lanes_do_t.OPEN: do_open_lane_30(); lanes_do_t.STORE: do_store_lane_30(); } size = 4; } Register<lane_t, bit<12>>(SLOTS) lanes_of_31; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_31) add_lane_31 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_31; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_31) add_and_read_snapshot_lane_31 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + hdr.values.lanes_31; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_31) open_lane_31 = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(lanes_of_31) store_lane_31 = { void apply(inout lane_t value) { value.snapshot = hdr.values.lanes_31; } }; action do_add_lane_31() { hdr.values.lanes_31 = add_lane_31.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_lane_31() { hdr.values.lanes_31 = add_and_read_snapshot_lane_31.execute(meta.slot[(12 - 1):0]); } action do_open_lane_31() { hdr.values.lanes_31 = open_lane_31.execute(meta.slot[(12 - 1):0]); } action do_store_lane_31() { store_lane_31.execute(meta.slot[(12 - 1):0]); } table update_lane_31 { key = { meta.lanes_do: ternary; } actions = { do_add_lane_31; do_add_and_read_snapshot_lane_31; do_open_lane_31; do_store_lane_31; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_lane_31(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_lane_31(); lanes_do_t.OPEN: do_open_lane_31(); lanes_do_t.STORE: do_store_lane_31(); } size = 4; }


    apply {

        update_lane_0.apply(); update_lane_1.apply(); update_lane_2.apply(); update_lane_3.apply(); update_lane_4.apply(); update_lane_5.apply(); update_lane_6.apply(); update_lane_7.apply(); update_lane_8.apply(); update_lane_9.apply(); update_lane_10.apply(); update_lane_11.apply(); update_lane_12.apply(); update_lane_13.apply(); update_lane_14.apply(); update_lane_15.apply(); update_lane_16.apply(); update_lane_17.apply(); update_lane_18.apply(); update_lane_19.apply(); update_lane_20.apply(); update_lane_21.apply(); update_lane_22.apply(); update_lane_23.apply(); update_lane_24.apply(); update_lane_25.apply(); update_lane_26.apply(); update_lane_27.apply(); update_lane_28.apply(); update_lane_29.apply(); update_lane_30.apply(); update_lane_31.apply();

    }
}
# 11 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/barrier.p4" 1
# 11 "p4src/tna/barrier.p4"
struct age_t {
    session_t session;
    epoch_t epoch;
}

struct base_t {
    bit<32> era;
    int<32> base;
}

struct seen_t {
    session_t session;
    seq_t seq;
}

struct arrivals_t {
    bit<32> era;
    bit<32> word;
}

struct total_pair_t {
    total_t total;
    total_t unread;
}

control Barrier(inout headers_t hdr, inout metadata_t meta) {


    action set_sender(worker_bitmap_t sender) {
        meta.sender = sender;
    }


    table sender_bit {
        key = { hdr.serene.worker: exact; }
        actions = { set_sender; }
        const default_action = set_sender(0);
        const entries = { 0: set_sender(32w1 << 0); 1: set_sender(32w1 << 1); 2: set_sender(32w1 << 2); 3: set_sender(32w1 << 3); 4: set_sender(32w1 << 4); 5: set_sender(32w1 << 5); 6: set_sender(32w1 << 6); 7: set_sender(32w1 << 7); 8: set_sender(32w1 << 8); 9: set_sender(32w1 << 9); 10: set_sender(32w1 << 10); 11: set_sender(32w1 << 11); 12: set_sender(32w1 << 12); 13: set_sender(32w1 << 13); 14: set_sender(32w1 << 14); 15: set_sender(32w1 << 15); }
        size = MAX_WORKERS;
    }


    action count_sender() {
        meta.counted = 1;
    }



    table counted_in {
        key = {
            meta.policy.sync_mask: ternary;
            hdr.serene.worker: ternary;
            meta.policy.staleness: ternary;
            meta.policy.quorum: ternary;
        }
        actions = { count_sender; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (_, _, UNBOUNDED, _): NoAction();
            (_, _, _, 0): NoAction();
            (32w1 << 0 &&& 32w1 << 0, 0, _, _): count_sender(); (32w1 << 1 &&& 32w1 << 1, 1, _, _): count_sender(); (32w1 << 2 &&& 32w1 << 2, 2, _, _): count_sender(); (32w1 << 3 &&& 32w1 << 3, 3, _, _): count_sender(); (32w1 << 4 &&& 32w1 << 4, 4, _, _): count_sender(); (32w1 << 5 &&& 32w1 << 5, 5, _, _): count_sender(); (32w1 << 6 &&& 32w1 << 6, 6, _, _): count_sender(); (32w1 << 7 &&& 32w1 << 7, 7, _, _): count_sender(); (32w1 << 8 &&& 32w1 << 8, 8, _, _): count_sender(); (32w1 << 9 &&& 32w1 << 9, 9, _, _): count_sender(); (32w1 << 10 &&& 32w1 << 10, 10, _, _): count_sender(); (32w1 << 11 &&& 32w1 << 11, 11, _, _): count_sender(); (32w1 << 12 &&& 32w1 << 12, 12, _, _): count_sender(); (32w1 << 13 &&& 32w1 << 13, 13, _, _): count_sender(); (32w1 << 14 &&& 32w1 << 14, 14, _, _): count_sender(); (32w1 << 15 &&& 32w1 << 15, 15, _, _): count_sender();
        }
        size = MAX_WORKERS + 2;
    }


    Hash<bit<32>>(HashAlgorithm_t.CRC32) era_hash;

    action set_era() {
        meta.era = era_hash.get({ hdr.serene.session, hdr.serene.epoch });
    }

    action set_mark() {
        meta.mark = hdr.serene.round << 8;
    }

    action set_target() {
        meta.target = meta.target + meta.mark;
    }



    Register<age_t, bit<12>>(SLOTS) era_of;



    RegisterAction<age_t, bit<12>, bit<8>>(era_of) enter_epoch = {
        void apply(inout age_t value, out bit<8> age) {
            age = this.predicate(value.session != hdr.serene.session, value.epoch != hdr.serene.epoch);
            value.session = hdr.serene.session;
            value.epoch = hdr.serene.epoch;
        }
    };
    RegisterAction<age_t, bit<12>, bit<8>>(era_of) enter_session = {
        void apply(inout age_t value, out bit<8> age) {
            age = this.predicate(value.session != hdr.serene.session, value.epoch != hdr.serene.epoch);
            if (value.session != hdr.serene.session) {
                value.session = hdr.serene.session;
                value.epoch = 0;
            }
        }
    };
# 126 "p4src/tna/barrier.p4"
    Register<base_t, bit<12>>(SLOTS) base_below;
    RegisterAction<base_t, bit<12>, bit<8>>(base_below) compare_ahead = {
        void apply(inout base_t value, out bit<8> ahead) {
            ahead = 0;
            if (value.era == meta.era && value.base < (int<32>)meta.limit) {
                ahead = 1;
            }
            if (value.era != meta.era) { value.era = meta.era; value.base = 0; }
        }
    };
    RegisterAction<base_t, bit<12>, bit<8>>(base_below) complete_below = {
        void apply(inout base_t value, out bit<8> moved) {
            moved = 0;
            if (value.era == meta.era && value.base <= (int<32>)meta.limit) { value.base = (int<32>)meta.limit + 1; moved = 1; }
        }
    };

    Register<base_t, bit<12>>(SLOTS) base_beyond;
    RegisterAction<base_t, bit<12>, bit<8>>(base_beyond) compare_behind = {
        void apply(inout base_t value, out bit<8> behind) {
            behind = 0;
            if (value.era == meta.era && value.base > (int<32>)meta.limit) {
                behind = 1;
            }
            if (value.era != meta.era) { value.era = meta.era; value.base = 0; }
        }
    };
    RegisterAction<base_t, bit<12>, bit<8>>(base_beyond) complete_beyond = {
        void apply(inout base_t value) {
            if (value.era == meta.era && value.base <= (int<32>)meta.limit) { value.base = (int<32>)meta.limit + 1; ; }
        }
    };

    Register<base_t, bit<12>>(SLOTS) base_of;
    RegisterAction<base_t, bit<12>, bit<32>>(base_of) current_base = {
        void apply(inout base_t value, out bit<32> base) {
            if (value.era != meta.era) { value.era = meta.era; value.base = 0; }
            base = (bit<32>)value.base;
        }
    };
    RegisterAction<base_t, bit<12>, bit<32>>(base_of) some_base = {
        void apply(inout base_t value, out bit<32> base) {
            base = (bit<32>)value.base;
        }
    };
    RegisterAction<base_t, bit<12>, bit<32>>(base_of) complete_base = {
        void apply(inout base_t value, out bit<32> base) {
            if (value.era == meta.era && value.base <= (int<32>)meta.limit) { value.base = (int<32>)meta.limit + 1; ; }
            base = (bit<32>)value.base;
        }
    };

    action look_at_epoch() {
        meta.age_of_slot = enter_epoch.execute(meta.slot[(12 - 1):0]);
        meta.current = 1;
    }

    action look_at_session() {
        meta.age_of_slot = enter_session.execute(meta.slot[(12 - 1):0]);
    }



    Register<seen_t, bit<(12 + 4)>>(SLOTS * MAX_WORKERS) seen_of;

    RegisterAction<seen_t, bit<(12 + 4)>, bit<32>>(seen_of) accept_seq = {
        void apply(inout seen_t value, out bit<32> known) {
            known = 0;
            if (value.session == hdr.serene.session && value.seq >= hdr.serene.seq) {
                known = value.seq;
            } else {
                value.session = hdr.serene.session;
                value.seq = hdr.serene.seq;
            }
        }
    };
    RegisterAction<seen_t, bit<(12 + 4)>, bit<32>>(seen_of) read_seq = {
        void apply(inout seen_t value, out bit<32> seen) {
            seen = 0;
            if (value.session == hdr.serene.session) {
                seen = value.seq;
            }
        }
    };

    Hash<bit<(12 + 4)>>(HashAlgorithm_t.IDENTITY) seen_place;


    action accept(course_t course, lanes_do_t lanes_do) {
        meta.course = course;
        meta.lanes_do = lanes_do;
        bit<(12 + 4)> place = seen_place.get({ meta.slot[(12 - 1):0], hdr.serene.worker[(4 - 1):0] });
        meta.known = accept_seq.execute(place);
    }

    action look(course_t course, lanes_do_t lanes_do, bit<32> known) {
        meta.course = course;
        meta.lanes_do = lanes_do;
        meta.known = known;
        bit<(12 + 4)> place = seen_place.get({ meta.slot[(12 - 1):0], hdr.serene.worker[(4 - 1):0] });
        meta.seen = read_seq.execute(place);
    }

    action settle(course_t course, lanes_do_t lanes_do) {
        meta.course = course;
        meta.lanes_do = lanes_do;
        meta.known = 1;
    }




    table decide {
        key = {
            meta.request: ternary;
            meta.current: ternary;
            meta.counted: ternary;
            meta.age_of_slot: ternary;
            meta.ahead: ternary;
            meta.behind: ternary;
            meta.policy.staleness: ternary;
            meta.policy.read_mode: ternary;
            hdr.serene.seq: ternary;
        }
        actions = { accept; look; settle; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (request_t.COMPLETION, 1, _, _, 1, _, _, _, _): settle(course_t.COMPLETED, lanes_do_t.STORE);
            (request_t.COMPLETION, _, _, _, _, _, _, _, _): settle(course_t.OVERTAKEN, lanes_do_t.NOTHING);
            (request_t.PULL, _, _, 0 &&& 0b0101, _, _, _, _, _): look(course_t.READ, lanes_do_t.OPEN, 0);
            (request_t.PULL, _, _, _, _, _, _, _, _): look(course_t.READ, lanes_do_t.ADD, 1);
            (request_t.WRONG_ROUND, _, _, _, _, _, _, _, _): look(course_t.ASTRAY, lanes_do_t.NOTHING, 1);
            (request_t.PUSH, _, _, _, _, _, _, _, 0): look(course_t.ASTRAY, lanes_do_t.NOTHING, 1);
            (request_t.PUSH, _, _, 0 &&& 0b0101, _, _, _, _, _): look(course_t.OPENING, lanes_do_t.OPEN, 0);
            (request_t.PUSH, 1, _, 4, _, _, _, _, _): look(course_t.OPENING, lanes_do_t.OPEN, 1);
            (request_t.PUSH, 1, 1, _, 1, _, _, _, _): look(course_t.ASTRAY, lanes_do_t.NOTHING, 1);

            (request_t.PUSH, 1, 1, _, _, 1, 0, read_mode_t.SNAPSHOT, _):
                accept(course_t.FREE, lanes_do_t.ADD_READ_SNAPSHOT);
            (request_t.PUSH, 1, 1, _, _, 1, _, _, _): accept(course_t.GO, lanes_do_t.ADD);
            (request_t.PUSH, 1, 1, _, _, _, _, _, _): accept(course_t.WAIT, lanes_do_t.ADD);
            (request_t.PUSH, _, _, _, _, _, _, _, _): accept(course_t.FREE, lanes_do_t.ADD);
        }
        size = 16;
    }



    Register<worker_bitmap_t, bit<12>>(SLOTS) waiting_of;

    RegisterAction<worker_bitmap_t, bit<12>, worker_bitmap_t>(waiting_of) call_everybody = {
        void apply(inout worker_bitmap_t value, out worker_bitmap_t waiting) {
            waiting = value;
            value = 0;
        }
    };
    RegisterAction<worker_bitmap_t, bit<12>, worker_bitmap_t>(waiting_of) join_waiting = {
        void apply(inout worker_bitmap_t value) {
            value = value | meta.sender;
        }
    };
    RegisterAction<worker_bitmap_t, bit<12>, worker_bitmap_t>(waiting_of) leave_waiting = {
        void apply(inout worker_bitmap_t value) {
            value = value & ~meta.sender;
        }
    };

    action call() {
        meta.waiting = call_everybody.execute(meta.slot[(12 - 1):0]);
    }

    action forget() {
        call_everybody.execute(meta.slot[(12 - 1):0]);
    }

    action join() {
        join_waiting.execute(meta.slot[(12 - 1):0]);
    }

    action leave() {
        leave_waiting.execute(meta.slot[(12 - 1):0]);
    }

    table queue {
        key = {
            meta.request: ternary;
            meta.current: ternary;
            meta.counted: ternary;
            meta.age_of_slot: ternary;
            meta.ahead: ternary;
            meta.behind: ternary;
        }
        actions = { call; forget; join; leave; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (request_t.COMPLETION, 1, _, _, 1, _): call();
            (request_t.PULL, _, _, 0 &&& 0b0101, _, _): forget();
            (request_t.PUSH, _, _, 0 &&& 0b0101, _, _): forget();
            (request_t.PUSH, 1, _, 4, _, _): call();
            (request_t.PUSH, 1, 1, _, 1, _): NoAction();
            (request_t.PUSH, 1, 1, _, _, 0): join();
            (request_t.PUSH, _, _, _, _, _): leave();
        }
        size = 16;
    }





    Register<arrivals_t, bit<(12 + 4)>>(SLOTS * RING) arrivals_of;

    RegisterAction<arrivals_t, bit<(12 + 4)>, bit<32>>(arrivals_of) count_arrival = {
        void apply(inout arrivals_t value, out bit<32> arrived) {
            if (value.era == meta.era && value.word > meta.mark) {
                value.word = value.word + 1;
            } else {
                value.era = meta.era;
                value.word = meta.mark + 1;
            }
            arrived = value.word;
        }
    };
    RegisterAction<arrivals_t, bit<(12 + 4)>, bit<32>>(arrivals_of) read_arrivals = {
        void apply(inout arrivals_t value, out bit<32> arrived) {
            arrived = 0;
            if (value.era == meta.era && value.word > meta.mark) {
                arrived = value.word;
            }
        }
    };

    Hash<bit<(12 + 4)>>(HashAlgorithm_t.IDENTITY) ring_place;


    action arrive() {
        bit<(12 + 4)> place = ring_place.get({ meta.slot[(12 - 1):0], hdr.serene.round[(4 - 1):0] });
        meta.arrived = count_arrival.execute(place);
    }

    action arrive_again() {
        bit<(12 + 4)> place = ring_place.get({ meta.slot[(12 - 1):0], hdr.serene.round[(4 - 1):0] });
        meta.arrived = read_arrivals.execute(place);
    }



    Register<total_pair_t, bit<12>>(SLOTS) total_of;
    RegisterAction<total_pair_t, bit<12>, total_t>(total_of) count_contribution = {
        void apply(inout total_pair_t value, out total_t unread) {
            value.unread = value.total - hdr.serene.total;
            if (meta.known == 0) {
                value.total = value.total + 1;
            }
            unread = value.unread;
        }
    };
    RegisterAction<total_pair_t, bit<12>, total_t>(total_of) keep_or_forget_total = {
        void apply(inout total_pair_t value) {
            if (meta.known == 0) {
                value.total = 0;
            }
        }
    };


    Register<lane_t, bit<12>>(SLOTS) totals_of;
    RegisterAction<lane_t, bit<12>, bit<32>>(totals_of) add_total = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + 1; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(totals_of) add_and_read_snapshot_total = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = value.sum + 1; } read = value.snapshot; } }; RegisterAction<lane_t, bit<12>, bit<32>>(totals_of) open_total = { void apply(inout lane_t value, out bit<32> read) { if (meta.known == 0) { value.sum = 0; value.snapshot = 0; } else { value.snapshot = value.sum; } read = value.sum; } }; RegisterAction<lane_t, bit<12>, bit<32>>(totals_of) store_total = { void apply(inout lane_t value) { value.snapshot = hdr.serene.total; } }; action do_add_total() { hdr.serene.total = add_total.execute(meta.slot[(12 - 1):0]); } action do_add_and_read_snapshot_total() { hdr.serene.total = add_and_read_snapshot_total.execute(meta.slot[(12 - 1):0]); } action do_open_total() { hdr.serene.total = open_total.execute(meta.slot[(12 - 1):0]); } action do_store_total() { store_total.execute(meta.slot[(12 - 1):0]); } table update_total { key = { meta.lanes_do: ternary; } actions = { do_add_total; do_add_and_read_snapshot_total; do_open_total; do_store_total; @defaultonly NoAction; } const default_action = NoAction; const entries = { lanes_do_t.ADD: do_add_total(); lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_total(); lanes_do_t.OPEN: do_open_total(); lanes_do_t.STORE: do_store_total(); } size = 4; }

    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) contributions;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) repeats;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) blocked;
    Counter<bit<32>, bit<12>>(4096, CounterType_t.PACKETS) staleness;
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_wrong_round;



    action set_rounds_old(bit<4> rounds) {
        meta.rounds_old = rounds;
    }

    table rounds_unread {
        key = {
            meta.job.workers: exact;
            meta.unread[31:10]: ternary;
            meta.unread[9:0]: range;
        }
        actions = { set_rounds_old; }
        const default_action = set_rounds_old(15);






        const entries = { ((0 + 1), 0, 0 * (0 + 1) .. 0 * (0 + 1) + (0 + 1) - 1): set_rounds_old(0); ((0 + 1), 0, 1 * (0 + 1) .. 1 * (0 + 1) + (0 + 1) - 1): set_rounds_old(1); ((0 + 1), 0, 2 * (0 + 1) .. 2 * (0 + 1) + (0 + 1) - 1): set_rounds_old(2); ((0 + 1), 0, 3 * (0 + 1) .. 3 * (0 + 1) + (0 + 1) - 1): set_rounds_old(3); ((0 + 1), 0, 4 * (0 + 1) .. 4 * (0 + 1) + (0 + 1) - 1): set_rounds_old(4); ((0 + 1), 0, 5 * (0 + 1) .. 5 * (0 + 1) + (0 + 1) - 1): set_rounds_old(5); ((0 + 1), 0, 6 * (0 + 1) .. 6 * (0 + 1) + (0 + 1) - 1): set_rounds_old(6); ((0 + 1), 0, 7 * (0 + 1) .. 7 * (0 + 1) + (0 + 1) - 1): set_rounds_old(7); ((0 + 1), 0, 8 * (0 + 1) .. 8 * (0 + 1) + (0 + 1) - 1): set_rounds_old(8); ((0 + 1), 0, 9 * (0 + 1) .. 9 * (0 + 1) + (0 + 1) - 1): set_rounds_old(9); ((0 + 1), 0, 10 * (0 + 1) .. 10 * (0 + 1) + (0 + 1) - 1): set_rounds_old(10); ((0 + 1), 0, 11 * (0 + 1) .. 11 * (0 + 1) + (0 + 1) - 1): set_rounds_old(11); ((0 + 1), 0, 12 * (0 + 1) .. 12 * (0 + 1) + (0 + 1) - 1): set_rounds_old(12); ((0 + 1), 0, 13 * (0 + 1) .. 13 * (0 + 1) + (0 + 1) - 1): set_rounds_old(13); ((0 + 1), 0, 14 * (0 + 1) .. 14 * (0 + 1) + (0 + 1) - 1): set_rounds_old(14); ((1 + 1), 0, 0 * (1 + 1) .. 0 * (1 + 1) + (1 + 1) - 1): set_rounds_old(0); ((1 + 1), 0, 1 * (1 + 1) .. 1 * (1 + 1) + (1 + 1) - 1): set_rounds_old(1); ((1 + 1), 0, 2 * (1 + 1) .. 2 * (1 + 1) + (1 + 1) - 1): set_rounds_old(2); ((1 + 1), 0, 3 * (1 + 1) .. 3 * (1 + 1) + (1 + 1) - 1): set_rounds_old(3); ((1 + 1), 0, 4 * (1 + 1) .. 4 * (1 + 1) + (1 + 1) - 1): set_rounds_old(4); ((1 + 1), 0, 5 * (1 + 1) .. 5 * (1 + 1) + (1 + 1) - 1): set_rounds_old(5); ((1 + 1), 0, 6 * (1 + 1) .. 6 * (1 + 1) + (1 + 1) - 1): set_rounds_old(6); ((1 + 1), 0, 7 * (1 + 1) .. 7 * (1 + 1) + (1 + 1) - 1): set_rounds_old(7); ((1 + 1), 0, 8 * (1 + 1) .. 8 * (1 + 1) + (1 + 1) - 1): set_rounds_old(8); ((1 + 1), 0, 9 * (1 + 1) .. 9 * (1 + 1) + (1 + 1) - 1): set_rounds_old(9); ((1 + 1), 0, 10 * (1 + 1) .. 10 * (1 + 1) + (1 + 1) - 1): set_rounds_old(10); ((1 + 1), 0, 11 * (1 + 1) .. 11 * (1 + 1) + (1 + 1) - 1): set_rounds_old(11); ((1 + 1), 0, 12 * (1 + 1) .. 12 * (1 + 1) + (1 + 1) - 1): set_rounds_old(12); ((1 + 1), 0, 13 * (1 + 1) .. 13 * (1 + 1) + (1 + 1) - 1): set_rounds_old(13); ((1 + 1), 0, 14 * (1 + 1) .. 14 * (1 + 1) + (1 + 1) - 1): set_rounds_old(14); ((2 + 1), 0, 0 * (2 + 1) .. 0 * (2 + 1) + (2 + 1) - 1): set_rounds_old(0); ((2 + 1), 0, 1 * (2 + 1) .. 1 * (2 + 1) + (2 + 1) - 1): set_rounds_old(1); ((2 + 1), 0, 2 * (2 + 1) .. 2 * (2 + 1) + (2 + 1) - 1): set_rounds_old(2); ((2 + 1), 0, 3 * (2 + 1) .. 3 * (2 + 1) + (2 + 1) - 1): set_rounds_old(3); ((2 + 1), 0, 4 * (2 + 1) .. 4 * (2 + 1) + (2 + 1) - 1): set_rounds_old(4); ((2 + 1), 0, 5 * (2 + 1) .. 5 * (2 + 1) + (2 + 1) - 1): set_rounds_old(5); ((2 + 1), 0, 6 * (2 + 1) .. 6 * (2 + 1) + (2 + 1) - 1): set_rounds_old(6); ((2 + 1), 0, 7 * (2 + 1) .. 7 * (2 + 1) + (2 + 1) - 1): set_rounds_old(7); ((2 + 1), 0, 8 * (2 + 1) .. 8 * (2 + 1) + (2 + 1) - 1): set_rounds_old(8); ((2 + 1), 0, 9 * (2 + 1) .. 9 * (2 + 1) + (2 + 1) - 1): set_rounds_old(9); ((2 + 1), 0, 10 * (2 + 1) .. 10 * (2 + 1) + (2 + 1) - 1): set_rounds_old(10); ((2 + 1), 0, 11 * (2 + 1) .. 11 * (2 + 1) + (2 + 1) - 1): set_rounds_old(11); ((2 + 1), 0, 12 * (2 + 1) .. 12 * (2 + 1) + (2 + 1) - 1): set_rounds_old(12); ((2 + 1), 0, 13 * (2 + 1) .. 13 * (2 + 1) + (2 + 1) - 1): set_rounds_old(13); ((2 + 1), 0, 14 * (2 + 1) .. 14 * (2 + 1) + (2 + 1) - 1): set_rounds_old(14); ((3 + 1), 0, 0 * (3 + 1) .. 0 * (3 + 1) + (3 + 1) - 1): set_rounds_old(0); ((3 + 1), 0, 1 * (3 + 1) .. 1 * (3 + 1) + (3 + 1) - 1): set_rounds_old(1); ((3 + 1), 0, 2 * (3 + 1) .. 2 * (3 + 1) + (3 + 1) - 1): set_rounds_old(2); ((3 + 1), 0, 3 * (3 + 1) .. 3 * (3 + 1) + (3 + 1) - 1): set_rounds_old(3); ((3 + 1), 0, 4 * (3 + 1) .. 4 * (3 + 1) + (3 + 1) - 1): set_rounds_old(4); ((3 + 1), 0, 5 * (3 + 1) .. 5 * (3 + 1) + (3 + 1) - 1): set_rounds_old(5); ((3 + 1), 0, 6 * (3 + 1) .. 6 * (3 + 1) + (3 + 1) - 1): set_rounds_old(6); ((3 + 1), 0, 7 * (3 + 1) .. 7 * (3 + 1) + (3 + 1) - 1): set_rounds_old(7); ((3 + 1), 0, 8 * (3 + 1) .. 8 * (3 + 1) + (3 + 1) - 1): set_rounds_old(8); ((3 + 1), 0, 9 * (3 + 1) .. 9 * (3 + 1) + (3 + 1) - 1): set_rounds_old(9); ((3 + 1), 0, 10 * (3 + 1) .. 10 * (3 + 1) + (3 + 1) - 1): set_rounds_old(10); ((3 + 1), 0, 11 * (3 + 1) .. 11 * (3 + 1) + (3 + 1) - 1): set_rounds_old(11); ((3 + 1), 0, 12 * (3 + 1) .. 12 * (3 + 1) + (3 + 1) - 1): set_rounds_old(12); ((3 + 1), 0, 13 * (3 + 1) .. 13 * (3 + 1) + (3 + 1) - 1): set_rounds_old(13); ((3 + 1), 0, 14 * (3 + 1) .. 14 * (3 + 1) + (3 + 1) - 1): set_rounds_old(14); ((4 + 1), 0, 0 * (4 + 1) .. 0 * (4 + 1) + (4 + 1) - 1): set_rounds_old(0); ((4 + 1), 0, 1 * (4 + 1) .. 1 * (4 + 1) + (4 + 1) - 1): set_rounds_old(1); ((4 + 1), 0, 2 * (4 + 1) .. 2 * (4 + 1) + (4 + 1) - 1): set_rounds_old(2); ((4 + 1), 0, 3 * (4 + 1) .. 3 * (4 + 1) + (4 + 1) - 1): set_rounds_old(3); ((4 + 1), 0, 4 * (4 + 1) .. 4 * (4 + 1) + (4 + 1) - 1): set_rounds_old(4); ((4 + 1), 0, 5 * (4 + 1) .. 5 * (4 + 1) + (4 + 1) - 1): set_rounds_old(5); ((4 + 1), 0, 6 * (4 + 1) .. 6 * (4 + 1) + (4 + 1) - 1): set_rounds_old(6); ((4 + 1), 0, 7 * (4 + 1) .. 7 * (4 + 1) + (4 + 1) - 1): set_rounds_old(7); ((4 + 1), 0, 8 * (4 + 1) .. 8 * (4 + 1) + (4 + 1) - 1): set_rounds_old(8); ((4 + 1), 0, 9 * (4 + 1) .. 9 * (4 + 1) + (4 + 1) - 1): set_rounds_old(9); ((4 + 1), 0, 10 * (4 + 1) .. 10 * (4 + 1) + (4 + 1) - 1): set_rounds_old(10); ((4 + 1), 0, 11 * (4 + 1) .. 11 * (4 + 1) + (4 + 1) - 1): set_rounds_old(11); ((4 + 1), 0, 12 * (4 + 1) .. 12 * (4 + 1) + (4 + 1) - 1): set_rounds_old(12); ((4 + 1), 0, 13 * (4 + 1) .. 13 * (4 + 1) + (4 + 1) - 1): set_rounds_old(13); ((4 + 1), 0, 14 * (4 + 1) .. 14 * (4 + 1) + (4 + 1) - 1): set_rounds_old(14); ((5 + 1), 0, 0 * (5 + 1) .. 0 * (5 + 1) + (5 + 1) - 1): set_rounds_old(0); ((5 + 1), 0, 1 * (5 + 1) .. 1 * (5 + 1) + (5 + 1) - 1): set_rounds_old(1); ((5 + 1), 0, 2 * (5 + 1) .. 2 * (5 + 1) + (5 + 1) - 1): set_rounds_old(2); ((5 + 1), 0, 3 * (5 + 1) .. 3 * (5 + 1) + (5 + 1) - 1): set_rounds_old(3); ((5 + 1), 0, 4 * (5 + 1) .. 4 * (5 + 1) + (5 + 1) - 1): set_rounds_old(4); ((5 + 1), 0, 5 * (5 + 1) .. 5 * (5 + 1) + (5 + 1) - 1): set_rounds_old(5); ((5 + 1), 0, 6 * (5 + 1) .. 6 * (5 + 1) + (5 + 1) - 1): set_rounds_old(6); ((5 + 1), 0, 7 * (5 + 1) .. 7 * (5 + 1) + (5 + 1) - 1): set_rounds_old(7); ((5 + 1), 0, 8 * (5 + 1) .. 8 * (5 + 1) + (5 + 1) - 1): set_rounds_old(8); ((5 + 1), 0, 9 * (5 + 1) .. 9 * (5 + 1) + (5 + 1) - 1): set_rounds_old(9); ((5 + 1), 0, 10 * (5 + 1) .. 10 * (5 + 1) + (5 + 1) - 1): set_rounds_old(10); ((5 + 1), 0, 11 * (5 + 1) .. 11 * (5 + 1) + (5 + 1) - 1): set_rounds_old(11); ((5 + 1), 0, 12 * (5 + 1) .. 12 * (5 + 1) + (5 + 1) - 1): set_rounds_old(12); ((5 + 1), 0, 13 * (5 + 1) .. 13 * (5 + 1) + (5 + 1) - 1): set_rounds_old(13); ((5 + 1), 0, 14 * (5 + 1) .. 14 * (5 + 1) + (5 + 1) - 1): set_rounds_old(14); ((6 + 1), 0, 0 * (6 + 1) .. 0 * (6 + 1) + (6 + 1) - 1): set_rounds_old(0); ((6 + 1), 0, 1 * (6 + 1) .. 1 * (6 + 1) + (6 + 1) - 1): set_rounds_old(1); ((6 + 1), 0, 2 * (6 + 1) .. 2 * (6 + 1) + (6 + 1) - 1): set_rounds_old(2); ((6 + 1), 0, 3 * (6 + 1) .. 3 * (6 + 1) + (6 + 1) - 1): set_rounds_old(3); ((6 + 1), 0, 4 * (6 + 1) .. 4 * (6 + 1) + (6 + 1) - 1): set_rounds_old(4); ((6 + 1), 0, 5 * (6 + 1) .. 5 * (6 + 1) + (6 + 1) - 1): set_rounds_old(5); ((6 + 1), 0, 6 * (6 + 1) .. 6 * (6 + 1) + (6 + 1) - 1): set_rounds_old(6); ((6 + 1), 0, 7 * (6 + 1) .. 7 * (6 + 1) + (6 + 1) - 1): set_rounds_old(7); ((6 + 1), 0, 8 * (6 + 1) .. 8 * (6 + 1) + (6 + 1) - 1): set_rounds_old(8); ((6 + 1), 0, 9 * (6 + 1) .. 9 * (6 + 1) + (6 + 1) - 1): set_rounds_old(9); ((6 + 1), 0, 10 * (6 + 1) .. 10 * (6 + 1) + (6 + 1) - 1): set_rounds_old(10); ((6 + 1), 0, 11 * (6 + 1) .. 11 * (6 + 1) + (6 + 1) - 1): set_rounds_old(11); ((6 + 1), 0, 12 * (6 + 1) .. 12 * (6 + 1) + (6 + 1) - 1): set_rounds_old(12); ((6 + 1), 0, 13 * (6 + 1) .. 13 * (6 + 1) + (6 + 1) - 1): set_rounds_old(13); ((6 + 1), 0, 14 * (6 + 1) .. 14 * (6 + 1) + (6 + 1) - 1): set_rounds_old(14); ((7 + 1), 0, 0 * (7 + 1) .. 0 * (7 + 1) + (7 + 1) - 1): set_rounds_old(0); ((7 + 1), 0, 1 * (7 + 1) .. 1 * (7 + 1) + (7 + 1) - 1): set_rounds_old(1); ((7 + 1), 0, 2 * (7 + 1) .. 2 * (7 + 1) + (7 + 1) - 1): set_rounds_old(2); ((7 + 1), 0, 3 * (7 + 1) .. 3 * (7 + 1) + (7 + 1) - 1): set_rounds_old(3); ((7 + 1), 0, 4 * (7 + 1) .. 4 * (7 + 1) + (7 + 1) - 1): set_rounds_old(4); ((7 + 1), 0, 5 * (7 + 1) .. 5 * (7 + 1) + (7 + 1) - 1): set_rounds_old(5); ((7 + 1), 0, 6 * (7 + 1) .. 6 * (7 + 1) + (7 + 1) - 1): set_rounds_old(6); ((7 + 1), 0, 7 * (7 + 1) .. 7 * (7 + 1) + (7 + 1) - 1): set_rounds_old(7); ((7 + 1), 0, 8 * (7 + 1) .. 8 * (7 + 1) + (7 + 1) - 1): set_rounds_old(8); ((7 + 1), 0, 9 * (7 + 1) .. 9 * (7 + 1) + (7 + 1) - 1): set_rounds_old(9); ((7 + 1), 0, 10 * (7 + 1) .. 10 * (7 + 1) + (7 + 1) - 1): set_rounds_old(10); ((7 + 1), 0, 11 * (7 + 1) .. 11 * (7 + 1) + (7 + 1) - 1): set_rounds_old(11); ((7 + 1), 0, 12 * (7 + 1) .. 12 * (7 + 1) + (7 + 1) - 1): set_rounds_old(12); ((7 + 1), 0, 13 * (7 + 1) .. 13 * (7 + 1) + (7 + 1) - 1): set_rounds_old(13); ((7 + 1), 0, 14 * (7 + 1) .. 14 * (7 + 1) + (7 + 1) - 1): set_rounds_old(14); ((8 + 1), 0, 0 * (8 + 1) .. 0 * (8 + 1) + (8 + 1) - 1): set_rounds_old(0); ((8 + 1), 0, 1 * (8 + 1) .. 1 * (8 + 1) + (8 + 1) - 1): set_rounds_old(1); ((8 + 1), 0, 2 * (8 + 1) .. 2 * (8 + 1) + (8 + 1) - 1): set_rounds_old(2); ((8 + 1), 0, 3 * (8 + 1) .. 3 * (8 + 1) + (8 + 1) - 1): set_rounds_old(3); ((8 + 1), 0, 4 * (8 + 1) .. 4 * (8 + 1) + (8 + 1) - 1): set_rounds_old(4); ((8 + 1), 0, 5 * (8 + 1) .. 5 * (8 + 1) + (8 + 1) - 1): set_rounds_old(5); ((8 + 1), 0, 6 * (8 + 1) .. 6 * (8 + 1) + (8 + 1) - 1): set_rounds_old(6); ((8 + 1), 0, 7 * (8 + 1) .. 7 * (8 + 1) + (8 + 1) - 1): set_rounds_old(7); ((8 + 1), 0, 8 * (8 + 1) .. 8 * (8 + 1) + (8 + 1) - 1): set_rounds_old(8); ((8 + 1), 0, 9 * (8 + 1) .. 9 * (8 + 1) + (8 + 1) - 1): set_rounds_old(9); ((8 + 1), 0, 10 * (8 + 1) .. 10 * (8 + 1) + (8 + 1) - 1): set_rounds_old(10); ((8 + 1), 0, 11 * (8 + 1) .. 11 * (8 + 1) + (8 + 1) - 1): set_rounds_old(11); ((8 + 1), 0, 12 * (8 + 1) .. 12 * (8 + 1) + (8 + 1) - 1): set_rounds_old(12); ((8 + 1), 0, 13 * (8 + 1) .. 13 * (8 + 1) + (8 + 1) - 1): set_rounds_old(13); ((8 + 1), 0, 14 * (8 + 1) .. 14 * (8 + 1) + (8 + 1) - 1): set_rounds_old(14); ((9 + 1), 0, 0 * (9 + 1) .. 0 * (9 + 1) + (9 + 1) - 1): set_rounds_old(0); ((9 + 1), 0, 1 * (9 + 1) .. 1 * (9 + 1) + (9 + 1) - 1): set_rounds_old(1); ((9 + 1), 0, 2 * (9 + 1) .. 2 * (9 + 1) + (9 + 1) - 1): set_rounds_old(2); ((9 + 1), 0, 3 * (9 + 1) .. 3 * (9 + 1) + (9 + 1) - 1): set_rounds_old(3); ((9 + 1), 0, 4 * (9 + 1) .. 4 * (9 + 1) + (9 + 1) - 1): set_rounds_old(4); ((9 + 1), 0, 5 * (9 + 1) .. 5 * (9 + 1) + (9 + 1) - 1): set_rounds_old(5); ((9 + 1), 0, 6 * (9 + 1) .. 6 * (9 + 1) + (9 + 1) - 1): set_rounds_old(6); ((9 + 1), 0, 7 * (9 + 1) .. 7 * (9 + 1) + (9 + 1) - 1): set_rounds_old(7); ((9 + 1), 0, 8 * (9 + 1) .. 8 * (9 + 1) + (9 + 1) - 1): set_rounds_old(8); ((9 + 1), 0, 9 * (9 + 1) .. 9 * (9 + 1) + (9 + 1) - 1): set_rounds_old(9); ((9 + 1), 0, 10 * (9 + 1) .. 10 * (9 + 1) + (9 + 1) - 1): set_rounds_old(10); ((9 + 1), 0, 11 * (9 + 1) .. 11 * (9 + 1) + (9 + 1) - 1): set_rounds_old(11); ((9 + 1), 0, 12 * (9 + 1) .. 12 * (9 + 1) + (9 + 1) - 1): set_rounds_old(12); ((9 + 1), 0, 13 * (9 + 1) .. 13 * (9 + 1) + (9 + 1) - 1): set_rounds_old(13); ((9 + 1), 0, 14 * (9 + 1) .. 14 * (9 + 1) + (9 + 1) - 1): set_rounds_old(14); ((10 + 1), 0, 0 * (10 + 1) .. 0 * (10 + 1) + (10 + 1) - 1): set_rounds_old(0); ((10 + 1), 0, 1 * (10 + 1) .. 1 * (10 + 1) + (10 + 1) - 1): set_rounds_old(1); ((10 + 1), 0, 2 * (10 + 1) .. 2 * (10 + 1) + (10 + 1) - 1): set_rounds_old(2); ((10 + 1), 0, 3 * (10 + 1) .. 3 * (10 + 1) + (10 + 1) - 1): set_rounds_old(3); ((10 + 1), 0, 4 * (10 + 1) .. 4 * (10 + 1) + (10 + 1) - 1): set_rounds_old(4); ((10 + 1), 0, 5 * (10 + 1) .. 5 * (10 + 1) + (10 + 1) - 1): set_rounds_old(5); ((10 + 1), 0, 6 * (10 + 1) .. 6 * (10 + 1) + (10 + 1) - 1): set_rounds_old(6); ((10 + 1), 0, 7 * (10 + 1) .. 7 * (10 + 1) + (10 + 1) - 1): set_rounds_old(7); ((10 + 1), 0, 8 * (10 + 1) .. 8 * (10 + 1) + (10 + 1) - 1): set_rounds_old(8); ((10 + 1), 0, 9 * (10 + 1) .. 9 * (10 + 1) + (10 + 1) - 1): set_rounds_old(9); ((10 + 1), 0, 10 * (10 + 1) .. 10 * (10 + 1) + (10 + 1) - 1): set_rounds_old(10); ((10 + 1), 0, 11 * (10 + 1) .. 11 * (10 + 1) + (10 + 1) - 1): set_rounds_old(11); ((10 + 1), 0, 12 * (10 + 1) .. 12 * (10 + 1) + (10 + 1) - 1): set_rounds_old(12); ((10 + 1), 0, 13 * (10 + 1) .. 13 * (10 + 1) + (10 + 1) - 1): set_rounds_old(13); ((10 + 1), 0, 14 * (10 + 1) .. 14 * (10 + 1) + (10 + 1) - 1): set_rounds_old(14); ((11 + 1), 0, 0 * (11 + 1) .. 0 * (11 + 1) + (11 + 1) - 1): set_rounds_old(0); ((11 + 1), 0, 1 * (11 + 1) .. 1 * (11 + 1) + (11 + 1) - 1): set_rounds_old(1); ((11 + 1), 0, 2 * (11 + 1) .. 2 * (11 + 1) + (11 + 1) - 1): set_rounds_old(2); ((11 + 1), 0, 3 * (11 + 1) .. 3 * (11 + 1) + (11 + 1) - 1): set_rounds_old(3); ((11 + 1), 0, 4 * (11 + 1) .. 4 * (11 + 1) + (11 + 1) - 1): set_rounds_old(4); ((11 + 1), 0, 5 * (11 + 1) .. 5 * (11 + 1) + (11 + 1) - 1): set_rounds_old(5); ((11 + 1), 0, 6 * (11 + 1) .. 6 * (11 + 1) + (11 + 1) - 1): set_rounds_old(6); ((11 + 1), 0, 7 * (11 + 1) .. 7 * (11 + 1) + (11 + 1) - 1): set_rounds_old(7); ((11 + 1), 0, 8 * (11 + 1) .. 8 * (11 + 1) + (11 + 1) - 1): set_rounds_old(8); ((11 + 1), 0, 9 * (11 + 1) .. 9 * (11 + 1) + (11 + 1) - 1): set_rounds_old(9); ((11 + 1), 0, 10 * (11 + 1) .. 10 * (11 + 1) + (11 + 1) - 1): set_rounds_old(10); ((11 + 1), 0, 11 * (11 + 1) .. 11 * (11 + 1) + (11 + 1) - 1): set_rounds_old(11); ((11 + 1), 0, 12 * (11 + 1) .. 12 * (11 + 1) + (11 + 1) - 1): set_rounds_old(12); ((11 + 1), 0, 13 * (11 + 1) .. 13 * (11 + 1) + (11 + 1) - 1): set_rounds_old(13); ((11 + 1), 0, 14 * (11 + 1) .. 14 * (11 + 1) + (11 + 1) - 1): set_rounds_old(14); ((12 + 1), 0, 0 * (12 + 1) .. 0 * (12 + 1) + (12 + 1) - 1): set_rounds_old(0); ((12 + 1), 0, 1 * (12 + 1) .. 1 * (12 + 1) + (12 + 1) - 1): set_rounds_old(1); ((12 + 1), 0, 2 * (12 + 1) .. 2 * (12 + 1) + (12 + 1) - 1): set_rounds_old(2); ((12 + 1), 0, 3 * (12 + 1) .. 3 * (12 + 1) + (12 + 1) - 1): set_rounds_old(3); ((12 + 1), 0, 4 * (12 + 1) .. 4 * (12 + 1) + (12 + 1) - 1): set_rounds_old(4); ((12 + 1), 0, 5 * (12 + 1) .. 5 * (12 + 1) + (12 + 1) - 1): set_rounds_old(5); ((12 + 1), 0, 6 * (12 + 1) .. 6 * (12 + 1) + (12 + 1) - 1): set_rounds_old(6); ((12 + 1), 0, 7 * (12 + 1) .. 7 * (12 + 1) + (12 + 1) - 1): set_rounds_old(7); ((12 + 1), 0, 8 * (12 + 1) .. 8 * (12 + 1) + (12 + 1) - 1): set_rounds_old(8); ((12 + 1), 0, 9 * (12 + 1) .. 9 * (12 + 1) + (12 + 1) - 1): set_rounds_old(9); ((12 + 1), 0, 10 * (12 + 1) .. 10 * (12 + 1) + (12 + 1) - 1): set_rounds_old(10); ((12 + 1), 0, 11 * (12 + 1) .. 11 * (12 + 1) + (12 + 1) - 1): set_rounds_old(11); ((12 + 1), 0, 12 * (12 + 1) .. 12 * (12 + 1) + (12 + 1) - 1): set_rounds_old(12); ((12 + 1), 0, 13 * (12 + 1) .. 13 * (12 + 1) + (12 + 1) - 1): set_rounds_old(13); ((12 + 1), 0, 14 * (12 + 1) .. 14 * (12 + 1) + (12 + 1) - 1): set_rounds_old(14); ((13 + 1), 0, 0 * (13 + 1) .. 0 * (13 + 1) + (13 + 1) - 1): set_rounds_old(0); ((13 + 1), 0, 1 * (13 + 1) .. 1 * (13 + 1) + (13 + 1) - 1): set_rounds_old(1); ((13 + 1), 0, 2 * (13 + 1) .. 2 * (13 + 1) + (13 + 1) - 1): set_rounds_old(2); ((13 + 1), 0, 3 * (13 + 1) .. 3 * (13 + 1) + (13 + 1) - 1): set_rounds_old(3); ((13 + 1), 0, 4 * (13 + 1) .. 4 * (13 + 1) + (13 + 1) - 1): set_rounds_old(4); ((13 + 1), 0, 5 * (13 + 1) .. 5 * (13 + 1) + (13 + 1) - 1): set_rounds_old(5); ((13 + 1), 0, 6 * (13 + 1) .. 6 * (13 + 1) + (13 + 1) - 1): set_rounds_old(6); ((13 + 1), 0, 7 * (13 + 1) .. 7 * (13 + 1) + (13 + 1) - 1): set_rounds_old(7); ((13 + 1), 0, 8 * (13 + 1) .. 8 * (13 + 1) + (13 + 1) - 1): set_rounds_old(8); ((13 + 1), 0, 9 * (13 + 1) .. 9 * (13 + 1) + (13 + 1) - 1): set_rounds_old(9); ((13 + 1), 0, 10 * (13 + 1) .. 10 * (13 + 1) + (13 + 1) - 1): set_rounds_old(10); ((13 + 1), 0, 11 * (13 + 1) .. 11 * (13 + 1) + (13 + 1) - 1): set_rounds_old(11); ((13 + 1), 0, 12 * (13 + 1) .. 12 * (13 + 1) + (13 + 1) - 1): set_rounds_old(12); ((13 + 1), 0, 13 * (13 + 1) .. 13 * (13 + 1) + (13 + 1) - 1): set_rounds_old(13); ((13 + 1), 0, 14 * (13 + 1) .. 14 * (13 + 1) + (13 + 1) - 1): set_rounds_old(14); ((14 + 1), 0, 0 * (14 + 1) .. 0 * (14 + 1) + (14 + 1) - 1): set_rounds_old(0); ((14 + 1), 0, 1 * (14 + 1) .. 1 * (14 + 1) + (14 + 1) - 1): set_rounds_old(1); ((14 + 1), 0, 2 * (14 + 1) .. 2 * (14 + 1) + (14 + 1) - 1): set_rounds_old(2); ((14 + 1), 0, 3 * (14 + 1) .. 3 * (14 + 1) + (14 + 1) - 1): set_rounds_old(3); ((14 + 1), 0, 4 * (14 + 1) .. 4 * (14 + 1) + (14 + 1) - 1): set_rounds_old(4); ((14 + 1), 0, 5 * (14 + 1) .. 5 * (14 + 1) + (14 + 1) - 1): set_rounds_old(5); ((14 + 1), 0, 6 * (14 + 1) .. 6 * (14 + 1) + (14 + 1) - 1): set_rounds_old(6); ((14 + 1), 0, 7 * (14 + 1) .. 7 * (14 + 1) + (14 + 1) - 1): set_rounds_old(7); ((14 + 1), 0, 8 * (14 + 1) .. 8 * (14 + 1) + (14 + 1) - 1): set_rounds_old(8); ((14 + 1), 0, 9 * (14 + 1) .. 9 * (14 + 1) + (14 + 1) - 1): set_rounds_old(9); ((14 + 1), 0, 10 * (14 + 1) .. 10 * (14 + 1) + (14 + 1) - 1): set_rounds_old(10); ((14 + 1), 0, 11 * (14 + 1) .. 11 * (14 + 1) + (14 + 1) - 1): set_rounds_old(11); ((14 + 1), 0, 12 * (14 + 1) .. 12 * (14 + 1) + (14 + 1) - 1): set_rounds_old(12); ((14 + 1), 0, 13 * (14 + 1) .. 13 * (14 + 1) + (14 + 1) - 1): set_rounds_old(13); ((14 + 1), 0, 14 * (14 + 1) .. 14 * (14 + 1) + (14 + 1) - 1): set_rounds_old(14); ((15 + 1), 0, 0 * (15 + 1) .. 0 * (15 + 1) + (15 + 1) - 1): set_rounds_old(0); ((15 + 1), 0, 1 * (15 + 1) .. 1 * (15 + 1) + (15 + 1) - 1): set_rounds_old(1); ((15 + 1), 0, 2 * (15 + 1) .. 2 * (15 + 1) + (15 + 1) - 1): set_rounds_old(2); ((15 + 1), 0, 3 * (15 + 1) .. 3 * (15 + 1) + (15 + 1) - 1): set_rounds_old(3); ((15 + 1), 0, 4 * (15 + 1) .. 4 * (15 + 1) + (15 + 1) - 1): set_rounds_old(4); ((15 + 1), 0, 5 * (15 + 1) .. 5 * (15 + 1) + (15 + 1) - 1): set_rounds_old(5); ((15 + 1), 0, 6 * (15 + 1) .. 6 * (15 + 1) + (15 + 1) - 1): set_rounds_old(6); ((15 + 1), 0, 7 * (15 + 1) .. 7 * (15 + 1) + (15 + 1) - 1): set_rounds_old(7); ((15 + 1), 0, 8 * (15 + 1) .. 8 * (15 + 1) + (15 + 1) - 1): set_rounds_old(8); ((15 + 1), 0, 9 * (15 + 1) .. 9 * (15 + 1) + (15 + 1) - 1): set_rounds_old(9); ((15 + 1), 0, 10 * (15 + 1) .. 10 * (15 + 1) + (15 + 1) - 1): set_rounds_old(10); ((15 + 1), 0, 11 * (15 + 1) .. 11 * (15 + 1) + (15 + 1) - 1): set_rounds_old(11); ((15 + 1), 0, 12 * (15 + 1) .. 12 * (15 + 1) + (15 + 1) - 1): set_rounds_old(12); ((15 + 1), 0, 13 * (15 + 1) .. 13 * (15 + 1) + (15 + 1) - 1): set_rounds_old(13); ((15 + 1), 0, 14 * (15 + 1) .. 14 * (15 + 1) + (15 + 1) - 1): set_rounds_old(14); }
        size = 512;
    }

    Hash<bit<12>>(HashAlgorithm_t.IDENTITY) staleness_index;

    action count_staleness() {
        bit<12> index = staleness_index.get({ hdr.serene.job[2:0], hdr.serene.worker[4:0], meta.rounds_old });
        staleness.count(index);
    }

    action find_old_round() {
        meta.before_base = hdr.serene.round - meta.base;
    }

    action find_lacking() {
        meta.lacking = meta.target |-| meta.arrived;
    }

    action see_fresh() {
        hdr.serene.seen = hdr.serene.seq;
    }

    action see_repeat() {
        hdr.serene.seen = meta.known;
    }

    action see_nothing_new() {
        hdr.serene.seen = meta.seen;
    }

    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) who;

    action count_fresh() {
        bit<8> index = who.get({ hdr.serene.job[2:0], hdr.serene.worker[4:0] });
        contributions.count(index);
    }

    action count_repeat() {
        bit<8> index = who.get({ hdr.serene.job[2:0], hdr.serene.worker[4:0] });
        repeats.count(index);
    }

    action count_blocked() {
        bit<8> index = who.get({ hdr.serene.job[2:0], hdr.serene.worker[4:0] });
        blocked.count(index);
    }

    action count_astray() {
        dropped_wrong_round.count(0);
    }

    action count_total() {
        meta.unread = count_contribution.execute(meta.slot[(12 - 1):0]);
    }

    action keep_total() {
        keep_or_forget_total.execute(meta.slot[(12 - 1):0]);
    }

    action complete_round_below() {
        meta.current = 1;
        meta.ahead = complete_below.execute(meta.slot[(12 - 1):0]);
    }

    action complete_round_beyond() {
        complete_beyond.execute(meta.slot[(12 - 1):0]);
    }

    action complete_round() {
        meta.base = complete_base.execute(meta.slot[(12 - 1):0]);
    }

    action look_ahead() {
        meta.ahead = compare_ahead.execute(meta.slot[(12 - 1):0]);
    }

    action look_behind() {
        meta.behind = compare_behind.execute(meta.slot[(12 - 1):0]);
    }

    action look_at_base() {
        meta.base = current_base.execute(meta.slot[(12 - 1):0]);
    }

    action look_at_any_base() {
        meta.base = some_base.execute(meta.slot[(12 - 1):0]);
    }

    apply {

        sender_bit.apply();
        set_era();
        set_mark();
        counted_in.apply();
        set_target();

        if ((((bit<8>)(meta.request))[3:3] == 1) && meta.known_policy == 1 && meta.room[31:31] == 1 && meta.session_gap == 0 && (meta.member == 1 || (((bit<8>)(meta.request))[2:2] == 1))) {
            if (meta.request == request_t.COMPLETION) {
                if (meta.epoch_gap == 0) {
                    complete_round_below();
                    complete_round_beyond();
                    complete_round();
                }
            } else if (meta.request == request_t.PUSH && meta.epoch_gap == 0) {
                look_at_epoch();
                look_ahead();
                look_behind();
                look_at_base();
            } else {
                look_at_session();
                look_at_any_base();
            }
            decide.apply();
            queue.apply();
            find_old_round();

            if ((meta.course == course_t.GO || meta.course == course_t.WAIT) && meta.before_base[31:31] == 0) {
                if (meta.known == 0) {
                    arrive();
                } else {
                    arrive_again();
                }
                find_lacking();
            }

            if ((((bit<8>)(meta.course))[2:2] == 1)) {
                count_total();
                if (meta.known == 0) {
                    count_fresh();
                    rounds_unread.apply();
                    count_staleness();
                    see_fresh();
                } else {
                    count_repeat();
                    see_repeat();
                }
            } else if (meta.course == course_t.READ || meta.course == course_t.OPENING) {
                if (meta.lanes_do == lanes_do_t.OPEN) {
                    keep_total();
                }
                see_nothing_new();
            } else if (meta.course == course_t.ASTRAY) {
                count_astray();
            }
            if (meta.course == course_t.WAIT && meta.lacking != 0) {
                count_blocked();
            }
            update_total.apply();
        }
    }
}
# 12 "p4src/tna/serene.p4" 2
# 1 "p4src/tna/answer.p4" 1



control Answer(inout headers_t hdr,
               inout egress_metadata_t meta,
               in egress_intrinsic_metadata_t eg_intr_md,
               inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) answers;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) releases;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) nudges;

    action set_receiver(worker_t worker, worker_bitmap_t bitmap) {
        meta.receiver = worker;
        meta.receiver_bit = bitmap;
    }

    action set_sender() {
        meta.receiver = hdr.serene.worker;
        meta.receiver_bit = 0;
    }



    table receiver {
        key = { eg_intr_md.egress_rid: exact; }
        actions = { set_receiver; set_sender; }
        const default_action = set_sender();
        const entries = { 0 + 1: set_receiver(0, 32w1 << 0); 1 + 1: set_receiver(1, 32w1 << 1); 2 + 1: set_receiver(2, 32w1 << 2); 3 + 1: set_receiver(3, 32w1 << 3); 4 + 1: set_receiver(4, 32w1 << 4); 5 + 1: set_receiver(5, 32w1 << 5); 6 + 1: set_receiver(6, 32w1 << 6); 7 + 1: set_receiver(7, 32w1 << 7); 8 + 1: set_receiver(8, 32w1 << 8); 9 + 1: set_receiver(9, 32w1 << 9); 10 + 1: set_receiver(10, 32w1 << 10); 11 + 1: set_receiver(11, 32w1 << 11); 12 + 1: set_receiver(12, 32w1 << 12); 13 + 1: set_receiver(13, 32w1 << 13); 14 + 1: set_receiver(14, 32w1 << 14); 15 + 1: set_receiver(15, 32w1 << 15); }
        size = MAX_WORKERS;
    }


    action to_member(mac_address_t mac, ipv4_address_t ip, bit<16> udp_port,
                     mac_address_t switch_mac, ipv4_address_t switch_ip) {
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = switch_mac;
        hdr.ipv4.source = switch_ip;
        hdr.ipv4.destination = ip;
        hdr.ipv4.ttl = 64;
        hdr.udp.source_port = SERENE_UDP_PORT;
        hdr.udp.destination_port = udp_port;
        hdr.udp.checksum = 0;
    }

    action nobody() {
        eg_dprsr_md.drop_ctl = 1;
    }


    table address {
        key = {
            hdr.serene.job: exact @name("job");
            meta.receiver: exact @name("worker");
        }
        actions = { to_member; nobody; }
        const default_action = nobody();
        size = 256;
    }

    action compare() {
        meta.to_other = meta.receiver ^ hdr.serene.worker;
        meta.released = meta.receiver_bit & hdr.bridge.waiting;
    }

    action welcome() {
        hdr.serene.op = op_t.WELCOME;
    }

    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) who;

    action answer() {
        hdr.serene.op = op_t.ANSWER;
        bit<8> index = who.get({ hdr.serene.job[2:0], meta.receiver[4:0] });
        answers.count(index);
    }

    action release() {
        hdr.serene.op = op_t.ANSWER;
        hdr.serene.seq = 0;
        bit<8> index = who.get({ hdr.serene.job[2:0], meta.receiver[4:0] });
        releases.count(index);
    }


    action nudge() {
        hdr.serene.op = op_t.NUDGE;
        hdr.serene.seq = 0;
        hdr.serene.total = 0;
        hdr.udp.length = UDP_BYTES + SERENE_BYTES;
        hdr.ipv4.total_length = IPV4_BYTES + UDP_BYTES + SERENE_BYTES;
        bit<8> index = who.get({ hdr.serene.job[2:0], meta.receiver[4:0] });
        nudges.count(index);
    }

    action drop() {
        eg_dprsr_md.drop_ctl = 1;
    }

    action set_worker() {
        hdr.serene.worker = meta.receiver;
    }

    apply {
        receiver.apply();
        compare();
        address.apply();
        set_worker();
        if (hdr.bridge.errand == errand_t.WELCOME) {
            welcome();
        } else if (meta.to_other != 0 && meta.released == 0) {
            drop();
        } else if (hdr.bridge.errand == errand_t.NUDGE) {
            nudge();
        } else if (meta.to_other == 0) {
            answer();
        } else {
            release();
        }
    }
}
# 13 "p4src/tna/serene.p4" 2

control SereneIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      in ingress_intrinsic_metadata_t ig_intr_md,
                      in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                      inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                      inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Forwarding() forwarding;
    Admission() admission;
    Barrier() barrier;
    Aggregation() aggregation;

    action set_bridge() {
        hdr.bridge.setValid();
        hdr.bridge.errand = errand_t.FORWARD;
        hdr.bridge.padding = 0;
        hdr.bridge.ingress_port = ig_intr_md.ingress_port;
        hdr.bridge.waiting = 0;
    }

    action send_as_told() {
        ig_tm_md.ucast_egress_port = hdr.packet_out.egress_port;
    }

    action set_group(bit<16> number) {
        meta.group = number;
    }


    table group {
        key = { hdr.serene.job: exact; }
        actions = { set_group; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            0: set_group(JOB_GROUPS);
            1: set_group(JOB_GROUPS + 1);
            2: set_group(JOB_GROUPS + 2);
            3: set_group(JOB_GROUPS + 3);
            4: set_group(JOB_GROUPS + 4);
            5: set_group(JOB_GROUPS + 5);
            6: set_group(JOB_GROUPS + 6);
            7: set_group(JOB_GROUPS + 7);
        }
        size = 8;
    }

    action say_policy() {
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
    }

    action welcome() {
        say_policy();
        hdr.membership.vector_length = meta.job.vector_length;
        hdr.membership.slots = meta.job.slots;
        hdr.membership.scale = meta.job.scale;
        hdr.membership.lanes = 32 * 1;
        hdr.membership.workers = meta.job.workers;
        hdr.membership.incarnation = meta.job.incarnation;
        hdr.bridge.errand = errand_t.WELCOME;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    action reply() {
        say_policy();
        hdr.serene.round = meta.base;
        hdr.bridge.errand = errand_t.ANSWER;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }


    action reply_empty() {
        say_policy();
        hdr.serene.round = 0;
        hdr.bridge.errand = errand_t.ANSWER;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    action release() {
        say_policy();
        hdr.serene.round = meta.base;
        hdr.bridge.errand = errand_t.RELEASE;
        hdr.bridge.waiting = meta.waiting;
        ig_tm_md.mcast_grp_a = meta.group;
    }

    action nudge() {
        say_policy();
        hdr.serene.round = 0;
        hdr.bridge.errand = errand_t.NUDGE;
        hdr.bridge.waiting = meta.waiting;
        ig_tm_md.mcast_grp_a = meta.group;
    }


    action pass_again() {
        hdr.serene.round = hdr.serene.round + meta.bound;
        hdr.bridge.setInvalid();
        ig_tm_md.ucast_egress_port = LOOP_PORT;
        ig_tm_md.bypass_egress = 1;
    }

    apply {
        set_bridge();
        if (hdr.packet_out.isValid()) {
            send_as_told();
        } else if (!hdr.udp.isValid() || hdr.udp.destination_port != SERENE_UDP_PORT) {
            forwarding.apply(hdr, meta, ig_intr_md, ig_dprsr_md, ig_tm_md);
        } else {
            group.apply();
            admission.apply(hdr, meta, ig_intr_md, ig_prsr_md, ig_tm_md);
            barrier.apply(hdr, meta);
            aggregation.apply(hdr, meta);

            if (meta.request == request_t.HELLO) {
                if (meta.member == 1 && meta.known_job == 1 && meta.known_policy == 1) {
                    welcome();
                }
            } else if (meta.course == course_t.OPENING) {
                nudge();
            } else if (meta.course == course_t.COMPLETED) {
                release();
            } else if (meta.course == course_t.READ && meta.lanes_do == lanes_do_t.OPEN) {
                reply_empty();
            } else if (meta.lacking == 0) {
                pass_again();
            } else if (meta.course == course_t.READ || meta.course == course_t.FREE || meta.course == course_t.GO) {
                reply();
            }
        }
    }
}

control SereneEgress(inout headers_t hdr,
                     inout egress_metadata_t meta,
                     in egress_intrinsic_metadata_t eg_intr_md,
                     in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                     inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                     inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Answer() answer;

    action say_port() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = hdr.bridge.ingress_port;
        hdr.packet_in.padding = 0;
    }

    action drop() {
        eg_dprsr_md.drop_ctl = 1;
    }

    apply {
        if (hdr.bridge.errand == errand_t.FORWARD) {
            if (eg_intr_md.egress_port == CPU_PORT) {
                say_port();
            }
        } else if (hdr.bridge.errand == errand_t.FLOOD) {
            if (eg_intr_md.egress_port == hdr.bridge.ingress_port) {
                drop();
            }
        } else {
            answer.apply(hdr, meta, eg_intr_md, eg_dprsr_md);
        }
    }
}

Pipeline(SereneParser(),
         SereneIngress(),
         SereneDeparser(),
         SereneEgressParser(),
         SereneEgress(),
         SereneEgressDeparser()) pipe;

Switch(pipe) main;
