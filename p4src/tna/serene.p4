// Serene's data plane on TNA (Tofino 1) and T2NA (Tofino 2).

#include <core.p4>
#include "headers.p4"
#include "checksum.p4"
#include "forwarding.p4"
#include "parser.p4"
#include "admission.p4"
#include "aggregation.p4"
#include "barrier.p4"
#include "contributions.p4"
#include "answer.p4"

#if __TARGET_TOFINO__ == 2
// Split over two containers, this field could not be set to a register's output.
@pa_container_size("ingress", "meta.waiting", 32)
#endif
control SereneIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      in ingress_intrinsic_metadata_t ig_intr_md,
                      in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                      inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                      inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Forwarding() forwarding;
    Admission() admission;
    Barrier() barrier;
    Contributions() contributed;
    Aggregation() aggregation;
    Refusal() refusal;

    action set_bridge() {
        hdr.bridge.setValid();
        hdr.bridge.purpose = purpose_t.NONE;
        hdr.bridge.padding = 0;
        hdr.bridge.ingress_port = ig_intr_md.ingress_port;
    }

    action send_as_told() {
        ig_tm_md.ucast_egress_port = hdr.packet_out.egress_port;
    }

    action set_group(bit<16> number) {
        meta.group = number;
    }

    // The multicast group of a job's workers, with one row for each of MAX_JOBS.
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
        hdr.called.setValid();
        hdr.called.waiting = 0;
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
        hdr.serene.members = meta.policy.members;
    }

    action welcome() {
        say_policy();
        hdr.membership.vector_length = meta.job.vector_length;
        hdr.membership.slots = meta.job.slots;
        hdr.membership.scale = meta.job.scale;
        hdr.membership.limit = meta.job.limit;
        hdr.membership.lanes = FIELDS * FIELD_LANES;
        hdr.membership.workers = meta.job.workers;
        hdr.membership.lost_sessions = meta.job.lost_sessions;
        hdr.bridge.purpose = purpose_t.WELCOME;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    action reply() {
        say_policy();
        hdr.serene.round = 0 - meta.minus_base;
        hdr.bridge.purpose = purpose_t.ANSWER;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    // Answers in a session that began with this packet.
    action reply_empty() {
        say_policy();
        hdr.serene.round = 0;
        hdr.bridge.purpose = purpose_t.ANSWER;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    action release() {
        say_policy();
        hdr.serene.round = 0 - meta.minus_base;
        hdr.bridge.purpose = purpose_t.RELEASE;
        hdr.called.waiting = meta.waiting;
        ig_tm_md.mcast_grp_a = meta.group;
    }

    action nudge() {
        say_policy();
        hdr.serene.round = 0;
        hdr.bridge.purpose = purpose_t.NUDGE;
        hdr.called.waiting = meta.waiting;
        ig_tm_md.mcast_grp_a = meta.group;
    }

    // Each pass subtracts the round from the bound. In the second pass `allowance` is therefore minus the round alone.
    action pass_again() {
        hdr.serene.round = hdr.serene.round + meta.bound;
        hdr.bridge.setInvalid();
        ig_tm_md.ucast_egress_port = LOOP_PORT;
        ig_tm_md.bypass_egress = 1;
    }

    // A packet that matches no entry has no destination, and is dropped.
    table dispatch {
        key = {
            meta.request: ternary;
            meta.member: ternary;
            meta.known_job: ternary;
            meta.known_policy: ternary;
            meta.verdict: ternary;
            meta.lanes_do: ternary;
            meta.round_counted: ternary;
            meta.lacking: ternary;
        }
        actions = { welcome; nudge; release; reply_empty; pass_again; reply; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (request_t.HELLO, 1, 1, 1, _, _, _, _): welcome();
            (_, _, _, _, verdict_t.OPENING, _, _, _): nudge();
            (_, _, _, _, verdict_t.COMPLETED, _, _, _): release();
            (_, _, _, _, verdict_t.READ, lanes_do_t.OPEN, _, _): reply_empty();
            (_, _, _, _, verdict_t.READ, _, _, _): reply();
            (_, _, _, _, verdict_t.GO, _, 1, 0): pass_again();
            (_, _, _, _, verdict_t.WAIT, _, 1, 0): pass_again();
            (_, _, _, _, verdict_t.FREE, _, _, _): reply();
            (_, _, _, _, verdict_t.GO, _, _, _): reply();
        }
        size = 16;
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
            contributed.apply(hdr, meta);
            aggregation.apply(hdr, meta);
            dispatch.apply();
            refusal.apply(meta);
        }
    }
}

#if __TARGET_TOFINO__ == 2
// An action that computes an index can set a constant only in a normal container of the field's own size.
@pa_container_type("egress", "hdr.serene.op", "normal")
@pa_container_size("egress", "hdr.serene.op", 8)
@pa_container_type("egress", "hdr.serene.seq", "normal")
@pa_container_type("egress", "hdr.serene.total", "normal")
@pa_container_type("egress", "hdr.udp.length", "normal")
@pa_container_type("egress", "hdr.ipv4.total_length", "normal")
#endif
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
        if (hdr.bridge.purpose == purpose_t.NONE) {
            if (eg_intr_md.egress_port == CPU_PORT) {
                say_port();
            }
        } else if (hdr.bridge.purpose == purpose_t.BETWEEN_HOSTS) {
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
