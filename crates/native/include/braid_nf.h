/* braid_nf.h: network functions in native code, for Braid.
 *
 * A function is a constant of type `braid_nf` in a shared library, named braid_nf_NAME. Braid makes an
 * instance of it for each node of a chain (and for each worker), passes packets to it one after another, and
 * never calls one instance from two threads at a time. docs/native.md describes the interface in full.
 *
 * The interface is stable: everything here stays. New parts come at the end of the structures, which have
 * their sizes as fields. A library built against this header runs with every later Braid that has the same
 * BRAID_NF_ABI.
 */
#ifndef BRAID_NF_H
#define BRAID_NF_H

#include <stddef.h>
#include <stdint.h>

#define BRAID_NF_ABI 1u

/* Braid's handle of one instance of a function. */
typedef struct braid_host braid_host;
/* The packet of an instance's call. It is not valid after the call returns. */
typedef struct braid_packet braid_packet;
/* Collects the state that an instance shows. */
typedef struct braid_dump braid_dump;
/* Collects the bytes that an instance saves. */
typedef struct braid_saved braid_saved;
/* A flow's number, unique in a run; 0 means no flow. */
typedef uint64_t braid_flow;
/* A header field, from braid_field_named. */
typedef int32_t braid_field;
/* A header, from braid_header_named. */
typedef int32_t braid_header;
/* A type of events that the function declares, from braid_event_named. */
typedef int32_t braid_event;
/* A tag that the function declares, from braid_tag_named. */
typedef int32_t braid_tag;
/* A number of up to 128 bits. */
typedef struct braid_wide {
  uint64_t low, high;
} braid_wide;

/* Return values of calls. Negative values are errors. */
enum {
  BRAID_OK = 0,
  BRAID_ABSENT = -1, /* the packet (or configuration) does not have it */
  BRAID_MISUSE = -2, /* not allowed here; the report has the details */
  BRAID_FULL = -3,   /* a limit is reached */
  BRAID_DENIED = -4  /* the function's declared profile does not allow it; the report says so */
};

/* Verdicts: the function's `packet` returns one of these. */
#define BRAID_FORWARD 0                        /* the packet goes on */
#define BRAID_DROP(reason) (1 | (reason) << 8) /* number of the reason in `reasons`, from 0 */
#define BRAID_BACK 2                           /* it goes back to where it came from */
#define BRAID_CONSUME 3                        /* the function consumes it */
#define BRAID_PORT(number) (4 | (number) << 8) /* number of the port in `ports`, from 0 */
#define BRAID_FAILED (-1)                      /* dropped as a fault; see braid_fail */

/* Decisions about a TCP connection: a stream function's `open` and `data` return one of these, or BRAID_FORWARD (the
 * connection and the packet go on), or BRAID_FAILED (they go on, too, and the failure is reported). */
#define BRAID_RESET(reason) (5 | (reason) << 8) /* both ends get a RST; the connection's packets are dropped */
#define BRAID_BYPASS 6                          /* the connection goes on, and the function hears no more of it */

/* How a state function uses the payload. */
enum { BRAID_IGNORE = 0, BRAID_READ = 1, BRAID_WRITE = 2 };

typedef void (*braid_state_function)(void *self, braid_packet *, void *arg);
typedef int32_t (*braid_condition)(void *self, braid_flow, void *arg);
typedef void (*braid_update)(void *self, braid_host *, braid_flow, void *arg);
typedef void (*braid_timer)(void *self, braid_host *, void *arg);

/* An action on the header of each packet of a flow. */
typedef struct braid_action {
  uint32_t kind;
  int32_t number;       /* reason, port, field or tag */
  braid_wide value;     /* of the field or tag */
  size_t at, length;    /* where to insert or remove bytes, from the packet's start, and how many */
  const uint8_t *bytes; /* copied by the call that takes the action */
} braid_action;
enum { BRAID_A_FORWARD, BRAID_A_DROP, BRAID_A_MODIFY, BRAID_A_ENCAP, BRAID_A_DECAP, BRAID_A_OUTPUT, BRAID_A_TAG };

/* A guard: when `condition` returns a value other than 0, `action` (if not NULL) replaces the record's header
 * actions (state functions stay), and `update` (if not NULL) records again. With neither, the record ends. */
typedef struct braid_guard {
  braid_condition condition;
  void *arg;
  const braid_action *action;
  braid_update update;
} braid_guard;

/* A part of a key, or a value, in a dump: BRAID_UINT, BRAID_IP4, BRAID_IP6, BRAID_PORT_NUMBER. */
typedef struct braid_item {
  const char *name; /* of a value; ignored in keys */
  uint32_t kind;
  uint32_t reserved;
  braid_wide value;
} braid_item;
enum { BRAID_UINT, BRAID_IP4, BRAID_IP6, BRAID_PORT_NUMBER };

/* The value of an event's field: a text if `text` is not NULL, and otherwise a number. braid_number, braid_number_wide,
 * braid_text and braid_text_of make one. */
typedef struct braid_value {
  braid_wide number;
  const char *text;
  size_t length; /* of the text, in bytes */
} braid_value;

/* A TCP connection. It is valid during the call that passes it. */
typedef struct braid_connection {
  uint32_t size;             /* of this structure */
  uint32_t version;          /* of IP: 4 or 6 */
  braid_flow flow;           /* its number; 0 if there is no room for another one */
  braid_wide client, server; /* addresses; the client has opened the connection */
  uint16_t client_port, server_port;
  uint32_t reserved;
} braid_connection;

/* The next bytes of an end of a connection, in order and without repetitions. They are valid during the call. */
typedef struct braid_data {
  uint32_t size;        /* of this structure */
  uint32_t from_client; /* 1: the client has sent them; 0: the server */
  const uint8_t *bytes;
  size_t length;
  uint64_t offset;  /* the place of the first byte in the stream, from 0 */
  uint64_t missing; /* how many bytes of this end, directly in front of these, the function has not had */
} braid_data;

/* The functions that Braid offers. Call them through the inline functions below. */
typedef struct braid_api {
  uint32_t abi, size;
  braid_flow (*flow)(braid_packet *);
  void *(*flow_state)(braid_packet *);
  int32_t (*get)(braid_packet *, braid_field, braid_wide *);
  int32_t (*set)(braid_packet *, braid_field, const braid_wide *);
  int32_t (*has)(braid_packet *, braid_header);
  const uint8_t *(*bytes)(braid_packet *, size_t *);
  uint8_t *(*change_bytes)(braid_packet *, size_t *);
  const uint8_t *(*payload)(braid_packet *, size_t *);
  uint8_t *(*change_payload)(braid_packet *, size_t *);
  int32_t (*insert)(braid_packet *, size_t, const uint8_t *, size_t);
  int32_t (*remove)(braid_packet *, size_t, size_t);
  braid_field (*field_named)(braid_host *, const char *);
  braid_header (*header_named)(braid_host *, const char *);
  uint64_t (*now)(braid_host *);
  int32_t (*config)(braid_host *, const char *, size_t, size_t, braid_wide *);
  int64_t (*config_rows)(braid_host *, const char *);
  const char *(*config_text)(braid_host *, const char *, size_t, size_t *);
  int32_t (*fail)(braid_host *, const char *);
  int32_t (*counter)(braid_host *, const char *);
  void (*count)(braid_host *, int32_t, uint64_t);
  void (*log)(braid_host *, const char *, const char *);
  int32_t (*timer)(braid_host *, uint64_t, uint64_t, braid_timer, void *);
  void *(*flow_memory)(braid_host *, braid_flow);
  void (*end_flow)(braid_host *, braid_flow);
  int32_t (*add_header_action)(braid_host *, braid_flow, const braid_action *);
  int32_t (*add_state_function)(braid_host *, braid_flow, braid_state_function, int32_t, void *);
  int32_t (*register_guard)(braid_host *, braid_flow, const braid_guard *);
  int32_t (*notify)(braid_host *, braid_flow);
  int32_t (*forget)(braid_host *, braid_flow);
  void (*dump_entry)(braid_dump *, const char *, const braid_item *, size_t, const braid_item *, size_t);
  braid_flow (*next_flow)(braid_host *, braid_flow);
  void (*save_bytes)(braid_saved *, const uint8_t *, size_t);
  braid_event (*event_named)(braid_host *, const char *);
  int32_t (*publish)(braid_host *, braid_event, const braid_value *, size_t);
  braid_tag (*tag_named)(braid_host *, const char *);
  int32_t (*get_tag)(braid_packet *, braid_tag, braid_wide *);
  int32_t (*set_tag)(braid_packet *, braid_tag, const braid_wide *);
  int32_t (*send)(braid_packet *, const uint8_t *, size_t, int32_t);
  int32_t (*send_from_timer)(braid_host *, const uint8_t *, size_t, int32_t);
  uint64_t (*share)(braid_host *, uint64_t);
} braid_api;

struct braid_host {
  const braid_api *api;
};
struct braid_packet {
  const braid_api *api;
  braid_host *host;
};
struct braid_dump {
  const braid_api *api;
};
struct braid_saved {
  const braid_api *api;
};

/* A declared action profile. Actions outside of it are reported. `reads` and `writes` are names of fields separated
 * by blanks, `payload`, and `*` for all bytes. */
typedef struct braid_profile {
  const char *reads, *writes;
  uint32_t may; /* BRAID_MAY_… */
  uint32_t reserved;
} braid_profile;
enum { BRAID_MAY_DROP = 1, BRAID_MAY_ADD = 2, BRAID_MAY_REMOVE = 4, BRAID_MAY_REDIRECT = 8 };

/* What one flow number stands for: one direction of a 5-tuple, or both. */
enum { BRAID_PER_FLOW = 0, BRAID_PER_BIFLOW = 1 };
/* What a function keeps from packet to packet. It says which packets need the same instance, if a chain has several
 * workers: all packets; none; the packets of a flow, in the scope of its flow numbers, while an ICMP error that quotes a
 * packet may come to any instance; or the packets of a connection of TCP or UDP in both directions, with the ICMP errors
 * that quote them, while it keeps nothing for other packets. A packet that a function of connections sends belongs to
 * the connection of the packet that made it do so. */
enum { BRAID_KEEPS_ANYTHING = 0, BRAID_KEEPS_NOTHING = 1, BRAID_KEEPS_FLOWS = 2, BRAID_KEEPS_CONNECTIONS = 3 };
/* The treatment of a new flow when there is no room. */
enum { BRAID_REFUSE = 0, BRAID_EVICT_OLDEST = 1 };

/* A function. `abi` and `size` are required, and so is `packet`, or for a stream function one of `open`, `data` and
 * `close`. Everything else may be 0. */
typedef struct braid_nf {
  uint32_t abi;  /* BRAID_NF_ABI */
  uint32_t size; /* sizeof(braid_nf) */
  const char *about;
  uint32_t flow_scope;
  uint32_t flow_full;
  uint64_t flow_bytes;     /* memory for each flow */
  uint64_t flow_capacity;  /* most flows; 0: 1,048,576. A parameter `flows` of the chain file overrides it */
  uint64_t flow_idle_ns;   /* time-out; 0: never. A parameter `idle` overrides it */
  const char *reasons;     /* for drops, one a line */
  const char *ports;       /* beside left and right, one a line */
  const braid_profile *profile;
  int32_t (*create)(braid_host *, void **self); /* other than 0: it refuses; give the reason with braid_fail */
  void (*destroy)(void *self);
  int32_t (*packet)(void *self, braid_packet *);
  void (*flow_end)(void *self, braid_host *, braid_flow, void *memory);
  int32_t (*change)(void *self, braid_host *, const char *parameter); /* NULL: no parameter can change */
  void (*dump)(void *self, braid_dump *);
  /* Saves the instance's memory, so that an instance of a later run goes on from it, also of a later version of the
   * library. `save` gives bytes to braid_save: the memory of flows too (braid_next_flow), but no pointers and no
   * records. `restore` gets these bytes in a new instance, before its first packet. Braid has put back the time, flows
   * (with memory of zeros), counters, and the timers that `create` has set; others are to be set again. Both return 0,
   * or refuse. Without both, the memory is lost between runs. */
  int32_t (*save)(void *self, braid_host *, braid_saved *);
  int32_t (*restore)(void *self, braid_host *, const uint8_t *bytes, size_t length);
  /* The types of the events that the function publishes, as the language writes their fields. A type may extend one in
   * front of it, and has the fields of that type first: "SCAN { src: ip4 } PORT_SCAN extends SCAN { ports: u32 }". If
   * the chain file or another function declares a type of the same name, it must have the same fields. */
  const char *events;
  /* The tags that the function reads or sets, with their types: "colour: u8 mark: u16". Functions that declare a tag of
   * the same name share the tag. */
  const char *tags;
  /* The most packets that the function sends for each packet, and in each call of a timer, at most 64; 0: none
   * (braid_send, braid_send_from_timer). */
  uint32_t sends;
  uint32_t keeps; /* BRAID_KEEPS_… */
  /* A stream function has these instead of `packet`: Braid follows TCP connections, and calls them in the order of
   * the stream. `open`: both ends have agreed on the connection, or its first bytes come. `data`: the next bytes of an
   * end have come. `close`: the connection is over, and the function has neither reset nor left it. They get no packet,
   * and may not record. The connection's number is a flow with memory (braid_flow_memory): it begins with `open`, and
   * ends (`flow_end`) behind `close`, BRAID_RESET or BRAID_BYPASS. */
  int32_t (*open)(void *self, braid_host *, const braid_connection *);
  int32_t (*data)(void *self, braid_host *, const braid_connection *, const braid_data *);
  void (*close)(void *self, braid_host *, const braid_connection *);
} braid_nf;

#if defined(_WIN32)
#define BRAID_EXPORT __declspec(dllexport)
#else
#define BRAID_EXPORT __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
#define BRAID_LINKAGE extern "C"
#else
#define BRAID_LINKAGE
#endif

/* Defines a function: BRAID_NF(monitor, .packet = on_packet, .flow_bytes = 16); */
#define BRAID_NF(name, ...) \
  BRAID_LINKAGE BRAID_EXPORT const braid_nf braid_nf_##name = {.abi = BRAID_NF_ABI, .size = sizeof(braid_nf), __VA_ARGS__}

/* An operator: a function over numbers that programs declare with `fn NAME(…) -> TYPE from "LIBRARY";` and call as
 * their own. It is pure: the same arguments (and the same payload, if reads_payload is not 0) give the same result, in
 * every process and for ever, and it changes nothing. Braid may call it from several threads at a time, calls it as
 * often as it likes, and keeps results for later packets of a flow. */
typedef struct braid_operator {
  uint32_t abi;           /* BRAID_NF_ABI */
  uint32_t size;          /* sizeof(braid_operator) */
  uint32_t reads_payload; /* payload and length are the packet's; otherwise they are empty */
  void (*run)(const braid_wide *args, size_t count, const uint8_t *payload, size_t length, braid_wide *result);
} braid_operator;

/* Defines an operator: BRAID_OPERATOR(parity, .run = parity); */
#define BRAID_OPERATOR(name, ...) \
  BRAID_LINKAGE BRAID_EXPORT const braid_operator braid_operator_##name = \
      {.abi = BRAID_NF_ABI, .size = sizeof(braid_operator), __VA_ARGS__}

/* Whether the running Braid offers a call that a later header has added: BRAID_OFFERS(packet, some_call). */
#define BRAID_OFFERS(handle, call) \
  ((handle)->api->size >= offsetof(braid_api, call) + sizeof((handle)->api->call))

/* The packet. Functions that return a pointer return NULL when they are refused: outside of a call, by the
 * declared profile, or by the use of the payload that a state function declares. */

/* The number of the flow that the packet had when it entered the function (SpeedyBox's nf_extract_fid); 0 if it is
 * no IP packet, or if there is no room for another flow. */
static inline braid_flow braid_flow_id(braid_packet *p) { return p->api->flow(p); }
/* The memory of the packet's flow, initially zero; NULL if braid_flow_id is 0. */
static inline void *braid_flow_state(braid_packet *p) { return p->api->flow_state(p); }
/* A field's value. */
static inline int32_t braid_get(braid_packet *p, braid_field f, uint64_t *value) {
  braid_wide wide = {0, 0};
  int32_t result = p->api->get(p, f, &wide);
  if (result == BRAID_OK) *value = wide.low;
  return result;
}
static inline int32_t braid_get_wide(braid_packet *p, braid_field f, braid_wide *value) { return p->api->get(p, f, value); }
/* Assigns a field and updates checksums. */
static inline int32_t braid_set(braid_packet *p, braid_field f, uint64_t value) {
  braid_wide wide = {value, 0};
  return p->api->set(p, f, &wide);
}
static inline int32_t braid_set_wide(braid_packet *p, braid_field f, const braid_wide *value) { return p->api->set(p, f, value); }
/* 1 if the packet has the header, 0 if not. */
static inline int32_t braid_has(braid_packet *p, braid_header h) { return p->api->has(p, h); }
/* The captured bytes; valid until the packet changes. */
static inline const uint8_t *braid_bytes(braid_packet *p, size_t *length) { return p->api->bytes(p, length); }
/* The same, to be changed in place. The function itself must then correct lengths and checksums. */
static inline uint8_t *braid_change_bytes(braid_packet *p, size_t *length) { return p->api->change_bytes(p, length); }
/* The bytes after the last header; NULL if the capture lacks some of them. */
static inline const uint8_t *braid_payload(braid_packet *p, size_t *length) { return p->api->payload(p, length); }
static inline uint8_t *braid_change_payload(braid_packet *p, size_t *length) { return p->api->change_payload(p, length); }
/* Inserts or removes bytes (encapsulation, decapsulation). */
static inline int32_t braid_insert(braid_packet *p, size_t at, const void *bytes, size_t length) {
  return p->api->insert(p, at, (const uint8_t *)bytes, length);
}
static inline int32_t braid_remove(braid_packet *p, size_t at, size_t length) { return p->api->remove(p, at, length); }

/* The instance. */

/* The field with this name in the language (docs/fields.md); -1 if there is none. */
static inline braid_field braid_field_named(braid_host *h, const char *name) { return h->api->field_named(h, name); }
static inline braid_header braid_header_named(braid_host *h, const char *name) { return h->api->header_named(h, name); }
/* The time in ns since the epoch: the packet's time, or the time at which a timer was due. */
static inline uint64_t braid_now(braid_host *h) { return h->api->now(h); }
/* The value of a parameter that is one number. */
static inline int32_t braid_config(braid_host *h, const char *parameter, uint64_t *value) {
  braid_wide wide = {0, 0};
  int32_t result = h->api->config(h, parameter, 0, 0, &wide);
  if (result == BRAID_OK) *value = wide.low;
  return result;
}
/* One number of a parameter that has rows, such as a list, and the number of rows. */
static inline int32_t braid_config_at(braid_host *h, const char *parameter, size_t row, size_t column, braid_wide *value) {
  return h->api->config(h, parameter, row, column, value);
}
static inline int64_t braid_config_rows(braid_host *h, const char *parameter) { return h->api->config_rows(h, parameter); }
/* The text of a parameter, or of its row. It ends with a 0 that `length` (may be NULL) does not count. */
static inline const char *braid_config_text(braid_host *h, const char *parameter, size_t row, size_t *length) {
  return h->api->config_text(h, parameter, row, length);
}
/* Reports the reason for a failure: `return braid_fail(host, "…");` */
static inline int32_t braid_fail(braid_host *h, const char *why) { return h->api->fail(h, why); }
/* The counter with this name, and an addition to a counter. The function's state shows its counters. */
static inline int32_t braid_counter(braid_host *h, const char *name) { return h->api->counter(h, name); }
static inline void braid_count(braid_host *h, int32_t counter, uint64_t n) { h->api->count(h, counter, n); }
/* Publishes an event LOG with a level ("info", "warning", …) and a text. No function can take it. */
static inline void braid_log(braid_host *h, const char *level, const char *text) { h->api->log(h, level, text); }
/* Calls `f` every `ns` from the first packet on, or once, `ns` from now. */
static inline int32_t braid_every(braid_host *h, uint64_t ns, braid_timer f, void *arg) { return h->api->timer(h, ns, ns, f, arg); }
static inline int32_t braid_after(braid_host *h, uint64_t ns, braid_timer f, void *arg) { return h->api->timer(h, ns, 0, f, arg); }
/* Calls `f` once, as soon as the time goes on, behind all other work that is due by then: in a live run before the next
 * burst, and when the worker that waited for packets looks around. */
static inline int32_t braid_soon(braid_host *h, braid_timer f, void *arg) { return h->api->timer(h, 0, UINT64_MAX, f, arg); }
/* The memory of the flow with this number, initially zero; NULL when it has ended. */
static inline void *braid_flow_memory(braid_host *h, braid_flow flow) { return h->api->flow_memory(h, flow); }
/* Ends a flow now. */
static inline void braid_end_flow(braid_host *h, braid_flow flow) { h->api->end_flow(h, flow); }

/* Recording: how to process later packets of a flow (SpeedyBox, Figure 2). The first of these calls for a packet
 * (or in an update) empties the flow's record, and all add to it. */

static inline int32_t braid_add_header_action(braid_host *h, braid_flow flow, braid_action action) {
  return h->api->add_header_action(h, flow, &action);
}
static inline int32_t braid_add_state_function(braid_host *h, braid_flow flow, braid_state_function f, int32_t payload, void *arg) {
  return h->api->add_state_function(h, flow, f, payload, arg);
}
static inline int32_t braid_register_guard(braid_host *h, braid_flow flow, braid_guard guard) {
  return h->api->register_guard(h, flow, &guard);
}
/* Reports a change of the function's state that the flow's own state functions did not make. The flow's guards are
 * checked. Flow 0 stands for all flows here. */
static inline int32_t braid_notify(braid_host *h, braid_flow flow) { return h->api->notify(h, flow); }
/* Ends the flow's record. */
static inline int32_t braid_forget(braid_host *h, braid_flow flow) { return h->api->forget(h, flow); }

static inline braid_action braid_forward(void) { braid_action a = {BRAID_A_FORWARD, 0, {0, 0}, 0, 0, NULL}; return a; }
static inline braid_action braid_drop(int32_t reason) { braid_action a = {BRAID_A_DROP, reason, {0, 0}, 0, 0, NULL}; return a; }
static inline braid_action braid_modify(braid_field field, uint64_t value) {
  braid_action a = {BRAID_A_MODIFY, field, {value, 0}, 0, 0, NULL};
  return a;
}
static inline braid_action braid_encap(size_t at, const uint8_t *bytes, size_t length) {
  braid_action a = {BRAID_A_ENCAP, 0, {0, 0}, at, length, bytes};
  return a;
}
static inline braid_action braid_decap(size_t at, size_t length) {
  braid_action a = {BRAID_A_DECAP, 0, {0, 0}, at, length, NULL};
  return a;
}
static inline braid_action braid_output(int32_t port) { braid_action a = {BRAID_A_OUTPUT, port, {0, 0}, 0, 0, NULL}; return a; }

/* The flow with the next higher number; 0 behind the last one. Begin with 0. */
static inline braid_flow braid_next_flow(braid_host *h, braid_flow flow) { return h->api->next_flow(h, flow); }
/* Saves bytes. Calls of one `save` add to each other. */
static inline void braid_save(braid_saved *s, const void *bytes, size_t length) {
  s->api->save_bytes(s, (const uint8_t *)bytes, length);
}

/* Events. */

/* The declared event type with this name; BRAID_ABSENT if the function declares none. */
static inline braid_event braid_event_named(braid_host *h, const char *name) { return h->api->event_named(h, name); }
static inline braid_value braid_number(uint64_t value) { braid_value v = {{value, 0}, NULL, 0}; return v; }
static inline braid_value braid_number_wide(braid_wide value) { braid_value v = {value, NULL, 0}; return v; }
static inline braid_value braid_text_of(const char *text, size_t length) {
  braid_value v = {{0, 0}, text, length};
  return v;
}
static inline braid_value braid_text(const char *text) {
  size_t length = 0;
  while (text && text[length]) length++;
  return braid_text_of(text ? text : "", length);
}
/* Publishes an event, with values for all its fields in their order. Values are copied. Other functions may take the
 * event: their handlers run when the present call is over, and before the packet goes on. */
static inline int32_t braid_publish(braid_host *h, braid_event event, const braid_value *values, size_t count) {
  return h->api->publish(h, event, values, count);
}

/* Tags: values that travel with the packet through the chain. A tag is 0 until a function sets it. */

/* The declared tag with this name; BRAID_ABSENT if the function declares none. */
static inline braid_tag braid_tag_named(braid_host *h, const char *name) { return h->api->tag_named(h, name); }
static inline int32_t braid_get_tag(braid_packet *p, braid_tag tag, uint64_t *value) {
  braid_wide wide = {0, 0};
  int32_t result = p->api->get_tag(p, tag, &wide);
  if (result == BRAID_OK) *value = wide.low;
  return result;
}
static inline int32_t braid_get_tag_wide(braid_packet *p, braid_tag tag, braid_wide *value) { return p->api->get_tag(p, tag, value); }
/* Sets a tag. A state function cannot do that; braid_mark is for records. */
static inline int32_t braid_set_tag(braid_packet *p, braid_tag tag, uint64_t value) {
  braid_wide wide = {value, 0};
  return p->api->set_tag(p, tag, &wide);
}
static inline int32_t braid_set_tag_wide(braid_packet *p, braid_tag tag, const braid_wide *value) { return p->api->set_tag(p, tag, value); }
/* A header action that sets a tag. */
static inline braid_action braid_mark(braid_tag tag, uint64_t value) {
  braid_action a = {BRAID_A_TAG, tag, {value, 0}, 0, 0, NULL};
  return a;
}

/* Sends a new packet with these bytes, 1 to 65,535 of them, from the link header on. They are copied. `where` is
 * BRAID_FORWARD, BRAID_BACK or BRAID_PORT(number), as for the packet itself. The new packet leaves when the function has
 * finished with the present packet, and before that one does. The function is responsible for lengths and checksums:
 * a malformed packet is lost and counted. State functions cannot send packets. */
static inline int32_t braid_send(braid_packet *p, const void *bytes, size_t length, int32_t where) {
  return p->api->send(p, (const uint8_t *)bytes, length, where);
}
/* The same from a timer, with the bytes from the Ethernet header on. BRAID_FORWARD is to the right, BRAID_BACK to the
 * left. */
static inline int32_t braid_send_from_timer(braid_host *h, const void *bytes, size_t length, int32_t where) {
  return h->api->send_from_timer(h, (const uint8_t *)bytes, length, where);
}

/* This instance's share of a limit: if a chain has several workers, each has an instance of the function, and their
 * shares together are the limit. */
static inline uint64_t braid_share(braid_host *h, uint64_t total) { return h->api->share(h, total); }

/* Shows an entry of a table of the function's state. */
static inline void braid_dump_entry(braid_dump *d, const char *table, const braid_item *key, size_t keys,
                                    const braid_item *values, size_t count) {
  d->api->dump_entry(d, table, key, keys, values, count);
}

#endif
