/* Functions that publish events, read and set tags, and send packets. */
#include <braid_nf.h>

struct flow { uint64_t packets; };

static braid_field inet_src;
static braid_event scan, many, tick;

static int32_t create(braid_host *host, void **self) {
  (void)self;
  inet_src = braid_field_named(host, "inet.src");
  scan = braid_event_named(host, "SCAN");
  many = braid_event_named(host, "MANY");
  tick = braid_event_named(host, "TICK");
  return 0;
}

/* Publishes an event for every third packet of a flow, and another one for every fourth. */
static void count(void *self, braid_packet *p, void *arg) {
  struct flow *flow = braid_flow_state(p);
  braid_value values[3];
  braid_wide src = {0, 0};
  (void)self, (void)arg;
  if (!flow) return;
  braid_get_wide(p, inet_src, &src);
  values[0] = braid_number_wide(src);
  values[1] = braid_number(++flow->packets);
  values[2] = braid_text("many \"packets\"");
  if (flow->packets % 3 == 0) braid_publish(p->host, scan, values, 1);
  if (flow->packets % 4 == 0) {
    braid_publish(p->host, many, values, 3);
    braid_log(p->host, "info", "many");
  }
}

static int32_t herald(void *self, braid_packet *p) {
  struct flow *flow = braid_flow_state(p);
  if (!flow) return BRAID_FORWARD;
  if (flow->packets == 0) {
    braid_add_header_action(p->host, braid_flow_id(p), braid_forward());
    braid_add_state_function(p->host, braid_flow_id(p), count, BRAID_IGNORE, NULL);
  }
  count(self, p, NULL);
  return BRAID_FORWARD;
}

#define EVENTS                                                      \
  "SCAN { src: addr }\n"                                            \
  "MANY extends SCAN { packets: u32, why: string }\n"               \
  "TICK extends EVENT { now: time }"

static const braid_profile reads = {"inet.src", "", 0, 0};
BRAID_NF(herald, .packet = herald, .create = create, .flow_bytes = sizeof(struct flow), .events = EVENTS,
         .profile = &reads, .keeps = BRAID_KEEPS_FLOWS);

/* Publishes an event every second, and for each flow that ends. */
static void ticks(void *self, braid_host *host, void *arg) {
  braid_value now = braid_number(braid_now(host));
  (void)self, (void)arg;
  braid_publish(host, tick, &now, 1);
}
static int32_t create_clock(braid_host *host, void **self) {
  int32_t result = create(host, self);
  return result ? result : braid_every(host, 1000000000, ticks, NULL);
}
static void ended(void *self, braid_host *host, braid_flow flow, void *memory) {
  (void)flow, (void)memory;
  ticks(self, host, NULL);
}
static int32_t clock_packet(void *self, braid_packet *p) {
  (void)self;
  braid_flow_id(p);
  return BRAID_FORWARD;
}
BRAID_NF(ticker, .packet = clock_packet, .create = create_clock, .flow_end = ended, .flow_idle_ns = 700000000,
         .events = EVENTS, .profile = &reads);

static braid_tag colour, hops;
static braid_field sport;

static int32_t create_tags(braid_host *host, void **self) {
  (void)self;
  colour = braid_tag_named(host, "colour");
  hops = braid_tag_named(host, "hops");
  sport = braid_field_named(host, "l4.sport");
  return 0;
}

/* Counts in one tag, and makes 3 of a colour of 1. */
static int32_t painter(void *self, braid_packet *p) {
  uint64_t value = 0;
  (void)self;
  braid_get_tag(p, hops, &value);
  braid_set_tag(p, hops, value + 1);
  braid_get_tag(p, colour, &value);
  if (value == 1) braid_set_tag(p, colour, 3);
  return BRAID_FORWARD;
}

#define TAGS "colour: u8 hops: u16"
static const braid_profile none = {"", "", 0, 0};
BRAID_NF(painter, .packet = painter, .create = create_tags, .tags = TAGS, .profile = &none);

/* Gives all packets of a flow a colour, and records that. */
static void count_only(void *self, braid_packet *p, void *arg) {
  struct flow *flow = braid_flow_state(p);
  (void)self, (void)arg;
  if (flow) flow->packets++;
}
static int32_t stain(void *self, braid_packet *p) {
  struct flow *flow = braid_flow_state(p);
  uint64_t port = 0;
  if (!flow || braid_get(p, sport, &port) != BRAID_OK) return BRAID_FORWARD;
  if (flow->packets == 0) {
    braid_add_header_action(p->host, braid_flow_id(p), braid_mark(colour, port & 3));
    braid_add_state_function(p->host, braid_flow_id(p), count_only, BRAID_IGNORE, NULL);
  }
  count_only(self, p, NULL);
  braid_set_tag(p, colour, port & 3);
  return BRAID_FORWARD;
}
static const braid_profile reads_sport = {"l4.sport", "", 0, 0};
BRAID_NF(stain, .packet = stain, .create = create_tags, .tags = TAGS, .flow_bytes = sizeof(struct flow),
         .profile = &reads_sport);

/* Sends packets to the source that asks for port 53: a copy onward, one back with the addresses exchanged, one by its
 * own port, and for some source ports malformed ones. */
#include <string.h>
static int32_t echo(void *self, braid_packet *p) {
  uint8_t copy[2048];
  uint64_t from = 0, to = 0;
  size_t length = 0;
  const uint8_t *bytes = braid_bytes(p, &length);
  braid_get(p, sport, &from);
  (void)self;
  if (length < 34 || length > sizeof copy || braid_get(p, braid_field_named(p->host, "l4.dport"), &to) != BRAID_OK)
    return BRAID_FORWARD;
  memcpy(copy, bytes, length);
  braid_set_tag(p, colour, 1);
  if (to == 53) {
    memcpy(copy + 26, bytes + 30, 4);
    memcpy(copy + 30, bytes + 26, 4);
    braid_send(p, copy, length, BRAID_BACK);
    braid_log(p->host, "info", "echo");
  }
  if (from % 3 == 0) braid_send(p, bytes, length, BRAID_FORWARD);
  if (from % 5 == 0) braid_send(p, bytes, length, BRAID_PORT(0));
  if (from % 4 == 0) {
    copy[14] = 0x4f; /* more header than there is */
    braid_send(p, copy, 40, BRAID_FORWARD);
    braid_send(p, copy, 3, BRAID_BACK);
  }
  return to == 80 ? BRAID_DROP(0) : to == 443 ? BRAID_FAILED : BRAID_FORWARD;
}
static const braid_profile reads_all = {"*", "", BRAID_MAY_DROP, 0};
BRAID_NF(echo, .packet = echo, .create = create_tags, .ports = "tap", .reasons = "web", .tags = TAGS, .sends = 5,
         .profile = &reads_all);

/* Every 50 ms of a run, a timer sends the first frame that the function has seen to both sides and to the function's own
 * port. */
#include <stdlib.h>
struct beacon {
  size_t length;
  uint8_t frame[256];
};
static void shine(void *self, braid_host *h, void *arg) {
  struct beacon *beacon = self;
  (void)arg;
  if (!beacon->length) return;
  braid_send_from_timer(h, beacon->frame, beacon->length, BRAID_FORWARD);
  braid_log(h, "info", "shines");
  braid_send_from_timer(h, beacon->frame, beacon->length, BRAID_BACK);
  braid_send_from_timer(h, beacon->frame, beacon->length, BRAID_PORT(0));
}
static int32_t beacon_create(braid_host *h, void **self) {
  *self = calloc(1, sizeof(struct beacon));
  return *self ? braid_every(h, 50 * 1000 * 1000, shine, NULL) : -1;
}
static void beacon_destroy(void *self) { free(self); }
static int32_t beacon(void *self, braid_packet *p) {
  struct beacon *beacon = self;
  size_t length = 0;
  const uint8_t *bytes = braid_bytes(p, &length);
  if (!beacon->length && length <= sizeof beacon->frame) {
    memcpy(beacon->frame, bytes, length);
    beacon->length = length;
  }
  return BRAID_FORWARD;
}
static const braid_profile reads_bytes = {"*", "", 0, 0};
BRAID_NF(beacon, .packet = beacon, .create = beacon_create, .destroy = beacon_destroy, .ports = "tap", .sends = 3,
         .profile = &reads_bytes);
