/* Functions that use the interface wrongly. Each name says how. */
#include <braid_nf.h>
#include <pthread.h>
#include <stdlib.h>

static int32_t forward(void *self, braid_packet *p) { return BRAID_FORWARD; }

BRAID_EXPORT const braid_nf braid_nf_old = {.abi = 0, .size = sizeof(braid_nf), .packet = forward};
BRAID_EXPORT const braid_nf braid_nf_small = {.abi = BRAID_NF_ABI, .size = 16, .packet = forward};
BRAID_NF(empty, .about = "has no code");
BRAID_NF(huge, .packet = forward, .flow_bytes = 1u << 30);
static const braid_profile nonsense_profile = {"ip.source", "", 0, 0};
BRAID_NF(nonsense, .packet = forward, .profile = &nonsense_profile);

static braid_packet *kept;
static int32_t misuse(void *self, braid_packet *p) {
  uint64_t value = 0;
  braid_host *h = p->host;
  kept = p;
  braid_get(p, 9999, &value);
  braid_set(p, braid_field_named(h, "ip.len"), 1);
  braid_set(p, braid_field_named(h, "l4.dport"), 70000);
  braid_add_header_action(h, 0, braid_forward());
  braid_add_header_action(h, 77, braid_forward());
  braid_add_header_action(h, braid_flow_id(p), braid_drop(5));
  braid_add_state_function(h, braid_flow_id(p), NULL, BRAID_READ, NULL);
  braid_count(h, 3, 1);
  braid_header_named(h, "ipx");
  braid_flow_state(p);
  return 77;
}
static void late(void *self, braid_host *h, void *arg) {
  uint64_t value = 0;
  braid_get(kept, 0, &value);
}
static int32_t misuse_create(braid_host *host, void **self) { return braid_every(host, 1000, late, NULL); }
BRAID_NF(misuse, .create = misuse_create, .packet = misuse);

static int32_t secret(void *self, braid_packet *p) {
  uint64_t value = 0;
  size_t length = 0;
  uint8_t *bytes = braid_change_bytes(p, &length);
  braid_get(p, braid_field_named(p->host, "ip.dst"), &value);
  if (length > 22) bytes[22]--; /* the TTL */
  return BRAID_DROP(0);
}
static const braid_profile secret_profile = {"ip.src", "ip.dst", 0, 0};
BRAID_NF(secret, .packet = secret, .reasons = "no reason", .profile = &secret_profile);

/* From its third packet on, does something else than it has recorded. */
static int32_t liar_create(braid_host *host, void **self) { return (*self = calloc(1, sizeof(int))) ? 0 : 1; }
static int32_t liar(void *self, braid_packet *p) {
  int packets = ++*(int *)self;
  braid_field dport = braid_field_named(p->host, "l4.dport");
  if (packets == 1) braid_add_header_action(p->host, braid_flow_id(p), braid_modify(dport, 80));
  braid_set(p, dport, packets < 3 ? 80 : 81);
  return BRAID_FORWARD;
}
BRAID_NF(liar, .create = liar_create, .destroy = free, .packet = liar);

/* Records a state function that forgets to count. */
static void forgets(void *self, braid_packet *p, void *arg) {}
static int32_t forgetful_create(braid_host *host, void **self) { return braid_counter(host, "packets"); }
static int32_t forgetful(void *self, braid_packet *p) {
  braid_flow flow = braid_flow_id(p);
  braid_add_state_function(p->host, flow, forgets, BRAID_IGNORE, NULL);
  braid_count(p->host, 0, 1);
  return BRAID_FORWARD;
}
BRAID_NF(forgetful, .create = forgetful_create, .packet = forgetful);

/* Records a state function that changes headers. */
static void meddles(void *self, braid_packet *p, void *arg) { braid_set(p, braid_field_named(p->host, "l4.dport"), 80); }
static int32_t meddler(void *self, braid_packet *p) {
  braid_add_state_function(p->host, braid_flow_id(p), meddles, BRAID_READ, NULL);
  return BRAID_FORWARD;
}
BRAID_NF(meddler, .packet = meddler);

/* Dereferences a null pointer at its third packet. */
static int32_t crash(void *self, braid_packet *p) {
  static int packets;
  volatile int *nowhere = NULL;
  if (++packets == 3) *nowhere = 1;
  return BRAID_FORWARD;
}
BRAID_NF(crash, .packet = crash);

static int32_t aborts(void *self, braid_packet *p) { abort(); }
BRAID_NF(aborts, .packet = aborts);

/* Publishes events wrongly, and says in counters what the calls returned. */
static void returned(braid_host *h, const char *what, int32_t status) {
  braid_count(h, braid_counter(h, what), (uint64_t)-(int64_t)status);
}
static int32_t loud(void *self, braid_packet *p) {
  braid_host *h = p->host;
  braid_value one[2] = {braid_number(1), braid_text("x")};
  braid_event event = braid_event_named(h, "SCAN");
  returned(h, "unknown", braid_event_named(h, "SCANS"));
  returned(h, "unknown handle", braid_publish(h, event + 1, one, 2));
  returned(h, "negative handle", braid_publish(h, -1, one, 2));
  returned(h, "too few", braid_publish(h, event, one, 1));
  returned(h, "nowhere", braid_publish(h, event, NULL, 2));
  one[0] = braid_number(256);
  returned(h, "too large", braid_publish(h, event, one, 2));
  one[0] = braid_text("x");
  returned(h, "a text", braid_publish(h, event, one, 2));
  one[0] = one[1] = braid_number(1);
  returned(h, "no text", braid_publish(h, event, one, 2));
  one[1] = braid_text_of(calloc(1, 5000), 5000);
  returned(h, "long text", braid_publish(h, event, one, 2));
  free((void *)one[1].text);
  one[1] = braid_text("");
  for (int at = 0; at < 1024; at++) returned(h, "good", braid_publish(h, event, one, 2));
  returned(h, "too many", braid_publish(h, event, one, 2));
  return BRAID_FORWARD;
}
BRAID_NF(loud, .packet = loud, .events = "SCAN { risk: u8, who: string }");
BRAID_NF(mute, .packet = forward, .events = "SCAN { risk: u8, who: string");

/* Calls Braid from another thread. */
static braid_host *of_thread;
static void *other_thread(void *p) {
  braid_value value = braid_number(1);
  uint64_t number = 0;
  int32_t status = braid_publish(of_thread, 0, &value, 1);
  if (braid_get(p, 0, &number) != BRAID_MISUSE || braid_flow_id(p) || braid_bytes(p, NULL)) status = 0;
  return (void *)(intptr_t)status;
}
static int32_t threaded(void *self, braid_packet *p) {
  pthread_t thread;
  void *status = NULL;
  of_thread = p->host;
  if (pthread_create(&thread, NULL, other_thread, p) != 0) return BRAID_FAILED;
  pthread_join(thread, &status);
  return (intptr_t)status == BRAID_MISUSE ? BRAID_FORWARD : BRAID_DROP(0);
}
BRAID_NF(threaded, .packet = threaded, .reasons = "a wrong status", .events = "A { a: u8 }");

/* Uses tags wrongly. */
static void tags_late(void *self, braid_packet *p, void *arg) { returned(p->host, "late", braid_set_tag(p, 0, 1)); }
static int32_t painter(void *self, braid_packet *p) {
  braid_host *h = p->host;
  braid_tag colour = braid_tag_named(h, "colour");
  uint64_t value = 0;
  returned(h, "unknown", braid_tag_named(h, "color"));
  returned(h, "unknown handle", braid_get_tag(p, 1, &value));
  returned(h, "negative handle", braid_set_tag(p, -1, 0));
  returned(h, "too large", braid_set_tag(p, colour, 256));
  returned(h, "mark too large", braid_add_header_action(h, braid_flow_id(p), braid_mark(colour, 256)));
  returned(h, "mark unknown", braid_add_header_action(h, braid_flow_id(p), braid_mark(1, 1)));
  returned(h, "mark", braid_add_header_action(h, braid_flow_id(p), braid_mark(colour, 255)));
  braid_add_state_function(h, braid_flow_id(p), tags_late, BRAID_READ, NULL);
  returned(h, "good", braid_set_tag(p, colour, 255));
  return BRAID_FORWARD;
}
BRAID_NF(painter, .packet = painter, .tags = "colour: u8");

/* Records another colour than it gives. */
static int32_t dyer(void *self, braid_packet *p) {
  braid_add_header_action(p->host, braid_flow_id(p), braid_mark(0, 1));
  braid_set_tag(p, 0, 2);
  return BRAID_FORWARD;
}
BRAID_NF(dyer, .packet = dyer, .tags = "colour: u8");
BRAID_NF(untyped, .packet = forward, .tags = "colour");

/* Sends packets wrongly. */
static uint8_t long_packet[70000];
static void sends_late(void *self, braid_packet *p, void *arg) { returned(p->host, "late", braid_send(p, "x", 1, BRAID_FORWARD)); }
static void sends_on_time(void *self, braid_host *h, void *arg) { returned(h, "timer", braid_send(kept, "x", 1, BRAID_FORWARD)); }
static int32_t sender(void *self, braid_packet *p) {
  braid_host *h = p->host;
  kept = p;
  returned(h, "nothing", braid_send(p, "", 0, BRAID_FORWARD));
  returned(h, "too long", braid_send(p, long_packet, sizeof long_packet, BRAID_FORWARD));
  returned(h, "nowhere", braid_send(p, NULL, 1, BRAID_FORWARD));
  returned(h, "to no port", braid_send(p, "x", 1, BRAID_PORT(1)));
  returned(h, "a drop", braid_send(p, "x", 1, BRAID_DROP(0)));
  returned(h, "no verdict", braid_send(p, "x", 1, 77));
  returned(h, "good", braid_send(p, long_packet, 65535, BRAID_PORT(0)));
  returned(h, "good", braid_send(p, "x", 1, BRAID_BACK));
  returned(h, "too many", braid_send(p, "x", 1, BRAID_FORWARD));
  returned(h, "not a timer", braid_send_from_timer(h, "x", 1, BRAID_FORWARD));
  braid_add_state_function(h, braid_flow_id(p), sends_late, BRAID_READ, NULL);
  return BRAID_FORWARD;
}
static int32_t sender_create(braid_host *host, void **self) { return braid_every(host, 1000, sends_on_time, NULL); }
BRAID_NF(sender, .packet = sender, .create = sender_create, .ports = "tap", .sends = 2);

/* Its timer sends to all places, and once too often. */
static void shines(void *self, braid_host *h, void *arg) {
  returned(h, "right", braid_send_from_timer(h, "r", 1, BRAID_FORWARD));
  returned(h, "left", braid_send_from_timer(h, "l", 1, BRAID_BACK));
  returned(h, "tap", braid_send_from_timer(h, "t", 1, BRAID_PORT(0)));
  returned(h, "too many", braid_send_from_timer(h, "x", 1, BRAID_FORWARD));
}
static int32_t beacon_create(braid_host *host, void **self) { return braid_every(host, 1000, shines, NULL); }
BRAID_NF(beacon, .packet = forward, .create = beacon_create, .ports = "tap", .sends = 3);

static int32_t stowaway(void *self, braid_packet *p) {
  return braid_send(p, "x", 1, BRAID_FORWARD) == BRAID_DENIED ? BRAID_FORWARD : BRAID_FAILED;
}
BRAID_NF(stowaway, .packet = stowaway);
BRAID_NF(spammer, .packet = forward, .sends = 65);
BRAID_NF(keeper, .packet = forward, .keeps = 4);
