/* The chain of the bench `isp` (firewall, router, NAPT) on DPDK's libraries: rte_acl, rte_lpm and
 * rte_hash, with the same rules, routes and packets, which `braid bench isp --export DIR` writes.
 *
 *   dpdk_isp FOLDER [RUNS [MILLISECONDS [DUMP.pcap]]] [-- EAL options]
 *
 * One thread, one core, 32 packets at a time, each copied from memory into a buffer first. Prints one
 * JSON object; times are net of the copying, which is measured between the trials. With DUMP.pcap the
 * first pass over the packets is written, so that it can be compared with what Braid gives out.
 *
 * What it does to a packet is what the models stateless_firewall, router and napt do to packets that
 * go out: the same rules in the same order, counted; martian addresses, TTL and the longest prefix; link
 * addresses of the next hop; a mapping by (protocol, source, port), ports given out from the lowest up,
 * and the time at which the mapping was last used; checksums by RFC 1624, updated once. What these
 * models answer (ICMP errors) is only counted as dropped here. */

#include <arpa/inet.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_acl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_lpm.h>

enum {
    BATCH = 32,
    LINE = 64,
    MAX_RULES = 1 << 20,
    HOPS = 16,
    MAPPINGS = 60 * 1024,
    FIRST_PORT = 1024,
    PUBLIC = 0xcb007101, /* 203.0.113.1 */
    ETHER = 14,
    L4 = ETHER + 20,
};

static void die(const char *what, const char *why) {
    fprintf(stderr, "dpdk_isp: %s: %s\n", what, why);
    exit(3);
}

/* ---- packets in memory ---- */

static uint8_t *frames;
static size_t frame_count, frame_length, stride;

static void read_packets(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        die(path, "cannot be read");
    uint32_t head[6], record[4];
    if (fread(head, sizeof head, 1, file) != 1 || (head[0] != 0xa1b23c4d && head[0] != 0xa1b2c3d4))
        die(path, "is no pcap of this byte order");
    uint8_t bytes[9000];
    size_t room = 0;
    while (fread(record, sizeof record, 1, file) == 1) {
        size_t length = record[2];
        if (length > sizeof bytes || fread(bytes, 1, length, file) != length)
            die(path, "is cut off");
        if (frame_count == 0) {
            frame_length = length;
            stride = (length + LINE - 1) / LINE * LINE;
        }
        if (length != frame_length || length < L4 + 16)
            die(path, "frames have to be of one length that holds headers");
        if (frame_count == room) {
            room = room ? room * 2 : 4096;
            frames = realloc(frames, room * stride);
            if (!frames)
                die(path, "no memory");
        }
        memcpy(frames + frame_count++ * stride, bytes, length);
    }
    fclose(file);
    if (frame_count == 0)
        die(path, "has no packets");
}

/* ---- the firewall's rules ---- */

enum { F_PROTO, F_SRC, F_DST, F_SPORT, F_DPORT, F_FLAGS, FIELDS };

/* Offsets count from the protocol in the IPv4 header. */
static const struct rte_acl_field_def fields[FIELDS] = {
    {RTE_ACL_FIELD_TYPE_BITMASK, 1, F_PROTO, 0, 0},
    {RTE_ACL_FIELD_TYPE_MASK, 4, F_SRC, 1, 3},
    {RTE_ACL_FIELD_TYPE_MASK, 4, F_DST, 2, 7},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, F_SPORT, 3, 11},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, F_DPORT, 3, 13},
    /* Data offset, flags and window of TCP. */
    {RTE_ACL_FIELD_TYPE_BITMASK, 4, F_FLAGS, 4, 23},
};

RTE_ACL_RULE_DEF(acl_rule, FIELDS);

static struct rte_acl_ctx *acl;
static uint64_t *rule_hits;
static uint32_t rule_count;

static uint32_t address(const char *text, unsigned *length) {
    unsigned a, b, c, d;
    if (sscanf(text, "%u.%u.%u.%u/%u", &a, &b, &c, &d, length) != 5)
        die(text, "is no prefix");
    return a << 24 | b << 16 | c << 8 | d;
}

static void read_rules(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        die(path, "cannot be read");
    struct rte_acl_param param = {
        .name = "rules",
        .socket_id = SOCKET_ID_ANY,
        .rule_size = RTE_ACL_RULE_SZ(FIELDS),
        .max_rule_num = MAX_RULES,
    };
    acl = rte_acl_create(&param);
    if (!acl)
        die("rte_acl_create", rte_strerror(rte_errno));
    char line[512], src[64], dst[64];
    unsigned low[2], high[2], proto, proto_mask, flags, flags_mask;
    while (fgets(line, sizeof line, file)) {
        if (line[0] != '@')
            continue;
        int found = sscanf(line, "@%63s %63s %u : %u %u : %u %x/%x %x/%x", src, dst, &low[0], &high[0],
                           &low[1], &high[1], &proto, &proto_mask, &flags, &flags_mask);
        if (found < 8)
            die(line, "is no rule");
        if (found < 10)
            flags = flags_mask = 0;
        unsigned src_length, dst_length;
        struct acl_rule rule = {
            .data = {.userdata = ++rule_count, .category_mask = 1,
                     .priority = RTE_ACL_MAX_PRIORITY - (int32_t)rule_count},
        };
        rule.field[F_PROTO].value.u8 = proto;
        rule.field[F_PROTO].mask_range.u8 = proto_mask;
        rule.field[F_SRC].value.u32 = address(src, &src_length);
        rule.field[F_SRC].mask_range.u32 = src_length;
        rule.field[F_DST].value.u32 = address(dst, &dst_length);
        rule.field[F_DST].mask_range.u32 = dst_length;
        rule.field[F_SPORT].value.u16 = low[0];
        rule.field[F_SPORT].mask_range.u16 = high[0];
        rule.field[F_DPORT].value.u16 = low[1];
        rule.field[F_DPORT].mask_range.u16 = high[1];
        /* The file has TCP's flags in the high half, which lies here behind the data offset. */
        bool tcp = proto == 6 && proto_mask == 0xff;
        rule.field[F_FLAGS].value.u32 = tcp ? (flags >> 8) << 16 : 0;
        rule.field[F_FLAGS].mask_range.u32 = tcp ? (flags_mask >> 8) << 16 : 0;
        if (rte_acl_add_rules(acl, (struct rte_acl_rule *)&rule, 1) != 0)
            die("rte_acl_add_rules", line);
    }
    fclose(file);
    struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
    memcpy(config.defs, fields, sizeof fields);
    if (rte_acl_build(acl, &config) != 0)
        die("rte_acl_build", "the rules cannot be built");
    rule_hits = calloc(rule_count + 1, sizeof *rule_hits);
}

/* ---- the router's table ---- */

static struct rte_lpm *lpm;
static uint8_t hop_macs[HOPS][12];
static unsigned route_count;

static void add_route(uint32_t prefix, unsigned length, unsigned hop) {
    if (rte_lpm_add(lpm, prefix, length, hop) != 0)
        die("rte_lpm_add", "no room");
}

static void read_routes(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        die(path, "cannot be read");
    struct rte_lpm_config config = {.max_rules = 1 << 21, .number_tbl8s = 1 << 14};
    lpm = rte_lpm_create("routes", SOCKET_ID_ANY, &config);
    if (!lpm)
        die("rte_lpm_create", rte_strerror(rte_errno));
    char line[256], text[64];
    unsigned hop, length;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%63[0-9./] %u", text, &hop) != 2)
            continue;
        uint32_t prefix = address(text, &length);
        route_count++;
        if (length == 0) {
            /* rte_lpm has no default route. */
            add_route(0, 1, hop % HOPS);
            add_route(0x80000000, 1, hop % HOPS);
        } else {
            add_route(prefix, length, hop % HOPS);
        }
    }
    fclose(file);
    for (unsigned hop = 0; hop < HOPS; hop++) {
        const uint8_t macs[12] = {2, 0, 0, 0, 2, hop, 2, 0, 0, 0, 1, hop};
        memcpy(hop_macs[hop], macs, sizeof macs);
    }
}

static bool is_martian(uint32_t address) {
    uint32_t top = address >> 24;
    return address == 0 || top == 127 || (top >= 224 && top <= 239) || address == UINT32_MAX;
}

/* ---- the NAPT's state ---- */

struct flow {
    uint32_t src;
    uint16_t port;
    uint8_t proto, zero;
};

struct inside {
    uint32_t address;
    uint16_t port;
};

static struct rte_hash *map, *back;
static uint64_t last_seen[MAPPINGS + 1];
static uint16_t mapped_port[MAPPINGS + 1];
static struct inside insides[MAPPINGS + 1];
static uint32_t next_port = FIRST_PORT;

static struct rte_hash *table(const char *name, uint32_t key_length) {
    struct rte_hash_parameters parameters = {
        .name = name,
        .entries = MAPPINGS,
        .key_len = key_length,
        .hash_func = rte_hash_crc,
        .socket_id = SOCKET_ID_ANY,
    };
    struct rte_hash *made = rte_hash_create(&parameters);
    if (!made)
        die("rte_hash_create", rte_strerror(rte_errno));
    return made;
}

/* A new mapping; -1 when there is no room or no port. */
static int32_t new_mapping(const struct flow *flow) {
    if (next_port > UINT16_MAX)
        return -1;
    int32_t at = rte_hash_add_key(map, flow);
    if (at < 0)
        return -1;
    uint32_t outside = (uint32_t)flow->proto << 16 | next_port;
    int32_t other = rte_hash_add_key(back, &outside);
    if (other < 0)
        return -1;
    mapped_port[at] = next_port++;
    insides[other] = (struct inside){flow->src, flow->port};
    return at;
}

/* ---- a batch ---- */

static uint8_t buffers[BATCH][2048] __rte_cache_aligned;
static bool sent[BATCH];
static uint64_t dropped, forwarded;

static inline uint16_t get16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, 2);
    return value;
}

static inline uint32_t get32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

static inline uint16_t fold(uint32_t sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* RFC 1624; all words in network byte order. */
static inline void fix(uint8_t *at, uint32_t delta) {
    uint16_t sum = (uint16_t)~fold((uint16_t)~get16(at) + delta);
    memcpy(at, &sum, 2);
}

static inline uint32_t change16(uint16_t old, uint16_t new) {
    return (uint16_t)~old + (uint32_t)new;
}

static inline uint32_t change32(uint32_t old, uint32_t new) {
    return (uint16_t)~(old & 0xffff) + (uint32_t)(uint16_t)~(old >> 16) + (new & 0xffff) + (new >> 16);
}

/* TCP or UDP over IPv4 without options or fragments; ICMP echo requests. */
static inline bool is_known(const uint8_t *bytes) {
    if (get16(bytes + 12) != htons(0x0800) || bytes[ETHER] != 0x45)
        return false;
    if (get16(bytes + ETHER + 6) & htons(0x3fff))
        return false;
    uint8_t proto = bytes[ETHER + 9];
    return proto == 6 || proto == 17 || (proto == 1 && bytes[L4] == 8);
}

static inline void rewrite(uint8_t *bytes, unsigned hop, uint16_t new_port) {
    memcpy(bytes, hop_macs[hop], 12);
    uint16_t ttl = get16(bytes + ETHER + 8);
    bytes[ETHER + 8]--;
    uint32_t src = get32(bytes + ETHER + 12), public = htonl(PUBLIC);
    uint32_t addresses = change32(src, public);
    fix(bytes + ETHER + 10, addresses + change16(ttl, get16(bytes + ETHER + 8)));
    memcpy(bytes + ETHER + 12, &public, 4);
    uint8_t proto = bytes[ETHER + 9];
    uint16_t port = htons(new_port);
    uint8_t *at = bytes + (proto == 1 ? L4 + 4 : L4);
    uint32_t ports = change16(get16(at), port);
    memcpy(at, &port, 2);
    if (proto == 1) {
        fix(bytes + L4 + 2, ports);
    } else if (proto == 6) {
        fix(bytes + L4 + 16, addresses + ports);
    } else if (get16(bytes + L4 + 6) != 0) {
        fix(bytes + L4 + 6, addresses + ports);
        if (get16(bytes + L4 + 6) == 0)
            memset(bytes + L4 + 6, 0xff, 2);
    }
}

static void work(uint64_t now) {
    const uint8_t *data[BATCH];
    uint32_t rules[BATCH], addresses[BATCH], hops[BATCH];
    struct flow flows[BATCH];
    const void *keys[BATCH];
    int32_t entries[BATCH];
    for (unsigned i = 0; i < BATCH; i++)
        data[i] = buffers[i] + ETHER + 9;
    rte_acl_classify(acl, data, rules, BATCH, 1);
    for (unsigned i = 0; i < BATCH; i++)
        addresses[i] = ntohl(get32(buffers[i] + ETHER + 16));
    rte_lpm_lookup_bulk(lpm, addresses, hops, BATCH);
    for (unsigned i = 0; i < BATCH; i++) {
        const uint8_t *bytes = buffers[i];
        uint8_t proto = bytes[ETHER + 9];
        uint16_t port = get16(proto == 1 ? bytes + L4 + 4 : bytes + L4);
        flows[i] = (struct flow){get32(bytes + ETHER + 12), port, proto, 0};
        keys[i] = &flows[i];
    }
    rte_hash_lookup_bulk(map, keys, BATCH, entries);
    for (unsigned i = 0; i < BATCH; i++) {
        uint8_t *bytes = buffers[i];
        rule_hits[rules[i]]++;
        sent[i] = false;
        if (rules[i] == 0 || !is_known(bytes) || !(hops[i] & RTE_LPM_LOOKUP_SUCCESS) || (bytes[0] & 1)
            || bytes[ETHER + 8] <= 1 || is_martian(addresses[i]) || is_martian(ntohl(flows[i].src))
            || addresses[i] == PUBLIC) {
            dropped++;
            continue;
        }
        int32_t entry = entries[i];
        if (entry < 0) {
            /* It may have come earlier in this batch. */
            entry = rte_hash_lookup(map, &flows[i]);
            entry = entry < 0 ? new_mapping(&flows[i]) : entry;
            if (entry < 0) {
                dropped++;
                continue;
            }
        }
        last_seen[entry] = now;
        rewrite(bytes, hops[i] & (HOPS - 1), mapped_port[entry]);
        sent[i] = true;
        forwarded++;
    }
}

static size_t position;

static void fill(void) {
    for (unsigned i = 0; i < BATCH; i++) {
        memcpy(buffers[i], frames + position * stride, frame_length);
        position = position + 1 == frame_count ? 0 : position + 1;
    }
    /* The compiler must not know what lies in the buffers. */
    __asm__ volatile("" ::: "memory");
}

/* ---- measuring ---- */

/* Time that this thread has spent on a processor, as `braid bench` measures it. */
static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t clock_ns;

static double trial(bool working, uint64_t batches) {
    uint64_t start = nanoseconds();
    for (uint64_t i = 0; i < batches; i++) {
        fill();
        if (working)
            work(clock_ns += BATCH * 100);
    }
    return (double)(nanoseconds() - start) / (batches * BATCH);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Trials of this long, after a quarter of one that does not count. */
static double measured(bool working, double milliseconds) {
    uint64_t few = 64;
    double each = trial(working, few);
    uint64_t batches = milliseconds * 1e6 / (each * BATCH);
    batches = batches < few ? few : batches;
    trial(working, batches / 4);
    return trial(working, batches);
}

/* Writes what leaves of the first pass; the packets' times are those of `braid bench`. */
static void dump(const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file)
        die(path, "cannot be written");
    uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
    fwrite(head, sizeof head, 1, file);
    uint64_t time_ns = 1735689600000000000ull;
    for (size_t done = 0; done < frame_count; done += BATCH) {
        fill();
        work(clock_ns += BATCH * 100);
        for (unsigned i = 0; i < BATCH && done + i < frame_count; i++) {
            time_ns += 100;
            if (!sent[i])
                continue;
            uint32_t record[4] = {time_ns / 1000000000, time_ns % 1000000000, frame_length, frame_length};
            fwrite(record, sizeof record, 1, file);
            fwrite(buffers[i], frame_length, 1, file);
        }
    }
    fclose(file);
}

int main(int argc, char **argv) {
    char *defaults[] = {"dpdk_isp", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m", "2048",
                        "--log-level=error", "--force-max-simd-bitwidth=512", "-l", NULL};
    char *eal[64], core[16];
    int used = 0, own = argc;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            own = i;
    if (own < 2)
        die("usage", "dpdk_isp FOLDER [RUNS [MILLISECONDS [DUMP.pcap]]] [-- EAL options]");
    while (defaults[used])
        eal[used] = defaults[used], used++;
    snprintf(core, sizeof core, "%d", sched_getcpu());
    eal[used++] = core;
    for (int i = own + 1; i < argc && used < 63; i++)
        eal[used++] = argv[i];
    if (rte_eal_init(used, eal) < 0)
        die("rte_eal_init", rte_strerror(rte_errno));
    int runs = own > 2 ? atoi(argv[2]) : 21;
    double milliseconds = own > 3 ? atof(argv[3]) : 8;
    runs = runs < 1 ? 1 : runs > 10000 ? 10000 : runs;

    char path[4096];
    snprintf(path, sizeof path, "%s/packets.pcap", argv[1]);
    read_packets(path);
    uint64_t start = nanoseconds();
    snprintf(path, sizeof path, "%s/rules", argv[1]);
    read_rules(path);
    snprintf(path, sizeof path, "%s/routes1", argv[1]);
    read_routes(path);
    double built_ms = (nanoseconds() - start) / 1e6;
    map = table("map", sizeof(struct flow));
    back = table("back", 4);

    if (own > 4)
        dump(argv[4]);
    trial(true, frame_count / BATCH + 4096);
    uint64_t warm_forwarded = forwarded, warm_dropped = dropped;
    double *source = malloc(runs * sizeof *source), *total = malloc(runs * sizeof *total);
    for (int run = 0; run < runs; run++) {
        source[run] = measured(false, milliseconds);
        total[run] = measured(true, milliseconds);
    }
    qsort(source, runs, sizeof *source, compare);
    qsort(total, runs, sizeof *total, compare);
    double net = source[runs / 2];
    uint64_t out = forwarded - warm_forwarded, all = out + dropped - warm_dropped;
    printf("{\"bench\":\"isp\",\"chain\":\"isp\",\"functions\":3,\"engine\":\"dpdk\",\"rules\":%u,\"routes\":%u,"
           "\"frame_bytes\":%zu,\"runs\":%d,\"ns_per_packet_median\":%.3f,\"ns_per_packet_min\":%.3f,"
           "\"ns_per_packet_max\":%.3f,\"source_ns\":%.3f,\"forwarded\":%.6f,\"mappings\":%u,\"compile_ms\":%.1f}\n",
           rule_count, route_count, frame_length, runs, total[runs / 2] - net, total[0] - net,
           total[runs - 1] - net, net, (double)out / all, next_port - FIRST_PORT, built_ms);
    rte_eal_cleanup();
    return 0;
}
