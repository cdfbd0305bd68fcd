/* Functions that use the interface correctly. */
#include <braid_nf.h>
#include <stdlib.h>
#include <string.h>

/* Counts packets of each flow; lets the first `limit` of them pass. */
typedef struct {
  uint64_t limit;
  int32_t passed;
  braid_field dport;
} limiter;
typedef struct {
  uint64_t packets;
  int32_t dropped; /* whether the record drops */
} per_flow;

static int32_t limiter_create(braid_host *host, void **self) {
  limiter *l = calloc(1, sizeof *l);
  if (braid_config(host, "limit", &l->limit) != BRAID_OK) {
    free(l);
    return braid_fail(host, "it needs a `limit`");
  }
  if (l->limit == 0) {
    free(l);
    return braid_fail(host, "a limit of 0 lets nothing pass");
  }
  l->passed = braid_counter(host, "passed");
  *self = l;
  return 0;
}

static void count(void *self, braid_packet *p, void *arg) {
  (void)arg;
  ((per_flow *)braid_flow_state(p))->packets++;
  braid_count(p->host, ((limiter *)self)->passed, 1);
}

static int32_t is_stale(void *self, braid_flow flow, void *arg) {
  per_flow *state = arg;
  (void)flow;
  return (state->packets >= ((limiter *)self)->limit) != state->dropped;
}

static void record(void *self, braid_host *host, braid_flow flow, void *arg) {
  per_flow *state = arg;
  state->dropped = state->packets >= ((limiter *)self)->limit;
  braid_add_header_action(host, flow, state->dropped ? braid_drop(0) : braid_forward());
  if (!state->dropped) braid_add_state_function(host, flow, count, BRAID_IGNORE, NULL);
  braid_register_guard(host, flow, (braid_guard){is_stale, state, NULL, record});
}

static int32_t limiter_packet(void *self, braid_packet *p) {
  limiter *l = self;
  braid_flow flow = braid_flow_id(p);
  per_flow *state = braid_flow_state(p);
  if (flow == 0) return BRAID_FORWARD;
  if (state->packets >= l->limit) return BRAID_DROP(0);
  count(self, p, NULL);
  if (state->packets == 1) record(self, p->host, flow, state);
  return BRAID_FORWARD;
}

static void limiter_dump(void *self, braid_dump *d) {
  limiter *l = self;
  braid_item value = {"limit", BRAID_UINT, 0, {l->limit, 0}};
  braid_dump_entry(d, "limiter", NULL, 0, &value, 1);
}

static int32_t limiter_change(void *self, braid_host *host, const char *parameter) {
  limiter *l = self;
  uint64_t limit = 0;
  if (strcmp(parameter, "limit") != 0) return 1;
  braid_config(host, parameter, &limit);
  if (limit == 0) return braid_fail(host, "a limit of 0 lets nothing pass");
  l->limit = limit;
  braid_notify(host, 0);
  return 0;
}

typedef struct {
  braid_flow flow;
  uint64_t packets;
} saved_flow;

static int32_t limiter_save(void *self, braid_host *host, braid_saved *into) {
  (void)self;
  for (braid_flow flow = 0; (flow = braid_next_flow(host, flow)) != 0;) {
    saved_flow one = {flow, ((per_flow *)braid_flow_memory(host, flow))->packets};
    braid_save(into, &one, sizeof one);
  }
  return 0;
}

static int32_t limiter_restore(void *self, braid_host *host, const uint8_t *bytes, size_t length) {
  (void)self;
  if (length % sizeof(saved_flow) != 0) return braid_fail(host, "these are no flows");
  for (size_t at = 0; at < length; at += sizeof(saved_flow)) {
    saved_flow one;
    memcpy(&one, bytes + at, sizeof one);
    per_flow *state = braid_flow_memory(host, one.flow);
    if (state) state->packets = one.packets;
  }
  return 0;
}

BRAID_NF(limiter, .about = "lets the first packets of each flow pass", .flow_bytes = sizeof(per_flow),
         .reasons = "over limit\nnever", .create = limiter_create, .destroy = free, .packet = limiter_packet,
         .dump = limiter_dump, .change = limiter_change, .save = limiter_save, .restore = limiter_restore);

/* Counts SYNs of each flow. From the fourth SYN on, the flow's packets are dropped and still counted (Figure 3). */
static void count_syn(void *self, braid_packet *p, void *arg) {
  uint64_t flags = 0;
  (void)self, (void)arg;
  if (braid_get(p, braid_field_named(p->host, "tcp.flags"), &flags) == BRAID_OK && (flags & 2))
    ((per_flow *)braid_flow_state(p))->packets++;
}
static int32_t is_flood(void *self, braid_flow flow, void *arg) {
  (void)self, (void)flow;
  return ((per_flow *)arg)->packets >= 4;
}
static int32_t dos_packet(void *self, braid_packet *p) {
  braid_flow flow = braid_flow_id(p);
  per_flow *state = braid_flow_state(p);
  int32_t drop;
  if (flow == 0) return BRAID_FORWARD;
  drop = state->packets >= 4;
  if (!drop && !state->dropped) {
    braid_action action = braid_drop(0);
    state->dropped = 1; /* recorded */
    braid_add_header_action(p->host, flow, braid_forward());
    braid_add_state_function(p->host, flow, count_syn, BRAID_IGNORE, NULL);
    braid_register_guard(p->host, flow, (braid_guard){is_flood, state, &action, NULL});
  }
  count_syn(self, p, NULL);
  return drop ? BRAID_DROP(0) : BRAID_FORWARD;
}
BRAID_NF(dos, .packet = dos_packet, .reasons = "flood", .flow_bytes = sizeof(per_flow));

/* Inserts four bytes after the Ethernet header of packets that go forward, and removes them from the others. */
static int32_t tunnel_packet(void *self, braid_packet *p) {
  static const uint8_t bytes[4] = {0xde, 0xad, 0xbe, 0xef};
  uint64_t backward = 0;
  (void)self;
  braid_get(p, braid_field_named(p->host, "pkt.backward"), &backward);
  if (backward) return braid_remove(p, 12, 4) == BRAID_OK ? BRAID_FORWARD : BRAID_DROP(0);
  braid_insert(p, 12, bytes, sizeof bytes);
  return BRAID_FORWARD;
}
static const braid_profile tunnel_profile = {"", "", BRAID_MAY_ADD | BRAID_MAY_REMOVE | BRAID_MAY_DROP, 0};
BRAID_NF(tunnel, .packet = tunnel_packet, .reasons = "not in the tunnel", .profile = &tunnel_profile);

/* Inserts a label and a tag, in this order, after the Ethernet header of packets that go forward, and removes as many
 * bytes from the others. It records these actions for each flow. */
static int32_t wrap_packet(void *self, braid_packet *p) {
  static const uint8_t tag[4] = {0xde, 0xad, 0xbe, 0xef}, label[2] = {0xca, 0xfe};
  braid_flow flow = braid_flow_id(p);
  per_flow *state = braid_flow_state(p);
  uint64_t backward = 0;
  (void)self;
  braid_get(p, braid_field_named(p->host, "pkt.backward"), &backward);
  if (flow != 0 && state->packets++ == 0) {
    if (backward) {
      braid_add_header_action(p->host, flow, braid_decap(16, 4));
      braid_add_header_action(p->host, flow, braid_decap(14, 2));
    } else {
      braid_add_header_action(p->host, flow, braid_encap(14, tag, sizeof tag));
      braid_add_header_action(p->host, flow, braid_encap(14, label, sizeof label));
    }
  }
  if (backward) return braid_remove(p, 14, 6) == BRAID_OK ? BRAID_FORWARD : BRAID_DROP(0);
  if (braid_insert(p, 14, tag, sizeof tag) != BRAID_OK) return BRAID_DROP(0);
  return braid_insert(p, 14, label, sizeof label) == BRAID_OK ? BRAID_FORWARD : BRAID_DROP(0);
}
BRAID_NF(wrap, .packet = wrap_packet, .reasons = "no room", .profile = &tunnel_profile, .flow_bytes = sizeof(per_flow),
         .flow_capacity = 40);

/* Logs the time: every second, once after 1.5 s, and when the time goes on for the first time. */
static void tick(void *self, braid_host *host, void *arg) {
  (void)self;
  braid_log(host, "info", arg);
}
static int32_t clock_create(braid_host *host, void **self) {
  (void)self;
  braid_every(host, 1000000000, tick, "tick");
  braid_soon(host, tick, "soon");
  return braid_after(host, 1500000000, tick, "once");
}
static void clock_flow_end(void *self, braid_host *host, braid_flow flow, void *memory) {
  (void)self, (void)memory;
  braid_log(host, "info", flow == 1 ? "flow 1 ended" : "a flow ended");
}
static int32_t clock_packet(void *self, braid_packet *p) {
  (void)self;
  braid_flow_id(p);
  return BRAID_FORWARD;
}
static int32_t clock_save(void *self, braid_host *host, braid_saved *into) {
  (void)self, (void)host, (void)into;
  return 0;
}
static int32_t clock_restore(void *self, braid_host *host, const uint8_t *bytes, size_t length) {
  (void)self, (void)bytes;
  return length == 0 ? 0 : braid_fail(host, "it has saved nothing");
}
BRAID_NF(clock, .create = clock_create, .packet = clock_packet, .flow_end = clock_flow_end, .flow_idle_ns = 1200000000,
         .save = clock_save, .restore = clock_restore);
