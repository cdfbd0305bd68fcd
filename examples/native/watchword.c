/* watchword: finds words in TCP connections, also where segments cut them, come late or twice.
 *
 *     cc -shared -fPIC -I crates/native/include -o examples/native/watchword.so examples/native/watchword.c
 *
 * It publishes an event for the bytes in which a word ends, and can reset the connection. It leaves a connection that
 * has sent enough without a word. At the end of the others, it publishes how many bytes of both ends have
 * come, and how many were missing between them. watchword.braid has the same function in the language.
 */
#include <braid_nf.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, LENGTH = 64, SSH = 22 };

struct word {
  uint32_t number;
  int nocase;
  size_t length;
  uint8_t text[LENGTH];
  uint8_t back[LENGTH]; /* for each length: the longest proper prefix of the word that the prefix of this length ends with */
};

struct watch {
  size_t count;
  struct word words[WORDS];
  uint64_t most, block;
  braid_event word, sent;
  int32_t found;
};

/* What is kept of a connection: how many bytes have come, and how many were missing; for the server and the client, how
 * much of each word their bytes end with. */
struct kept {
  uint64_t bytes, missing;
  uint8_t at[2][WORDS];
};

static uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }

/* How much of a word the stream ends with after one more byte (Knuth, Morris and Pratt). */
static size_t step(const struct word *w, size_t at, uint8_t c) {
  if (w->nocase) c = lower(c);
  while (at && (at == w->length || w->text[at] != c)) at = w->back[at - 1];
  return w->text[at] == c ? at + 1 : 0;
}

static int32_t read_word(braid_host *h, size_t row, struct word *w) {
  braid_wide number, is_regex, nocase;
  size_t i;
  const char *text = braid_config_text(h, "words", row, &w->length);
  if (!text || w->length == 0 || w->length > LENGTH) return braid_fail(h, "words have 1 to 64 bytes");
  braid_config_at(h, "words", row, 0, &number);
  braid_config_at(h, "words", row, 1, &is_regex);
  braid_config_at(h, "words", row, 2, &nocase);
  if (is_regex.low) return braid_fail(h, "it takes words, and no regular expressions");
  w->number = (uint32_t)number.low;
  w->nocase = nocase.low != 0;
  for (i = 0; i < w->length; i++) w->text[i] = w->nocase ? lower((uint8_t)text[i]) : (uint8_t)text[i];
  w->back[0] = 0;
  for (i = 1; i < w->length; i++) w->back[i] = (uint8_t)step(w, w->back[i - 1], w->text[i]);
  return 0;
}

static int32_t read_words(braid_host *h, struct watch *into) {
  int64_t rows = braid_config_rows(h, "words");
  size_t row;
  if (rows < 0 || rows > WORDS) return braid_fail(h, "it takes at most 8 words");
  for (row = 0; row < (size_t)rows; row++) {
    int32_t wrong = read_word(h, row, &into->words[row]);
    if (wrong) return wrong;
  }
  into->count = (size_t)rows;
  return 0;
}

static int32_t create(braid_host *h, void **self) {
  struct watch *w = calloc(1, sizeof *w);
  if (!w || read_words(h, w)) {
    free(w);
    return BRAID_FAILED;
  }
  braid_config(h, "most", &w->most);
  braid_config(h, "block", &w->block);
  w->word = braid_event_named(h, "WORD");
  w->sent = braid_event_named(h, "SENT");
  w->found = braid_counter(h, "words");
  *self = w;
  return 0;
}

/* Other words count from the next bytes on. */
static int32_t change(void *self, braid_host *h, const char *parameter) {
  struct watch *w = self, new_one = *w;
  braid_flow flow = 0;
  if (strcmp(parameter, "words")) {
    braid_config(h, "most", &w->most);
    braid_config(h, "block", &w->block);
    return 0;
  }
  if (read_words(h, &new_one)) return BRAID_FAILED;
  *w = new_one;
  while ((flow = braid_next_flow(h, flow))) {
    struct kept *kept = braid_flow_memory(h, flow);
    memset(kept->at, 0, sizeof kept->at);
  }
  return 0;
}

/* Publishes an event that extends FLOW: its ends from the sender to the receiver, then its own values. */
static void publish(braid_host *h, braid_event event, const braid_connection *c, int from_client, const uint64_t *own,
                    size_t count) {
  braid_value values[8];
  size_t i;
  values[0] = braid_number(c->version);
  values[1] = braid_number_wide(from_client ? c->client : c->server);
  values[2] = braid_number_wide(from_client ? c->server : c->client);
  values[3] = braid_number(6);
  values[4] = braid_number(from_client ? c->client_port : c->server_port);
  values[5] = braid_number(from_client ? c->server_port : c->client_port);
  for (i = 0; i < count; i++) values[6 + i] = braid_number(own[i]);
  braid_publish(h, event, values, 6 + count);
}

static int32_t open_connection(void *self, braid_host *h, const braid_connection *c) {
  (void)self;
  (void)h;
  return c->server_port == SSH ? BRAID_BYPASS : BRAID_FORWARD;
}

/* The first word that ends in these bytes; NULL if none does. */
static const struct word *search(const struct watch *w, uint8_t *at, const braid_data *d) {
  const struct word *found = NULL;
  size_t i, number;
  for (number = 0; number < w->count; number++) {
    const struct word *word = &w->words[number];
    size_t now = at[number];
    int ends = 0;
    for (i = 0; i < d->length; i++) {
      now = step(word, now, d->bytes[i]);
      ends |= now == word->length;
    }
    at[number] = (uint8_t)now;
    if (ends && (!found || word->number < found->number)) found = word;
  }
  return found;
}

static int32_t data(void *self, braid_host *h, const braid_connection *c, const braid_data *d) {
  struct watch *w = self;
  struct kept *kept = braid_flow_memory(h, c->flow);
  const struct word *found;
  uint8_t *at;
  uint64_t own[2];
  if (!kept) return BRAID_FORWARD; /* no room for another connection */
  kept->bytes += d->length;
  kept->missing += d->missing;
  at = kept->at[d->from_client];
  if (d->missing) memset(at, 0, WORDS); /* no word goes across missing bytes */
  found = search(w, at, d);
  if (!found) return d->offset > w->most ? BRAID_BYPASS : BRAID_FORWARD;
  braid_count(h, w->found, 1);
  own[0] = found->number;
  own[1] = d->offset;
  publish(h, w->word, c, (int)d->from_client, own, 2);
  return w->block ? BRAID_RESET(0) : BRAID_FORWARD;
}

static void close_connection(void *self, braid_host *h, const braid_connection *c) {
  struct watch *w = self;
  struct kept *kept = braid_flow_memory(h, c->flow);
  uint64_t own[2];
  if (!kept) return;
  own[0] = kept->bytes;
  own[1] = kept->missing;
  publish(h, w->sent, c, 1, own, 2);
}

/* The memory of each connection, with its number in front. */
static int32_t save(void *self, braid_host *h, braid_saved *s) {
  braid_flow flow = 0;
  (void)self;
  while ((flow = braid_next_flow(h, flow))) {
    braid_save(s, &flow, sizeof flow);
    braid_save(s, braid_flow_memory(h, flow), sizeof(struct kept));
  }
  return 0;
}

static int32_t restore(void *self, braid_host *h, const uint8_t *bytes, size_t length) {
  const size_t each = sizeof(braid_flow) + sizeof(struct kept);
  (void)self;
  for (; length >= each; bytes += each, length -= each) {
    braid_flow flow;
    struct kept *kept;
    memcpy(&flow, bytes, sizeof flow);
    kept = braid_flow_memory(h, flow);
    if (!kept) return braid_fail(h, "it has saved another connection");
    memcpy(kept, bytes + sizeof flow, sizeof *kept);
  }
  return length ? braid_fail(h, "its memory has another size") : 0;
}

BRAID_NF(watchword, .create = create, .destroy = free, .change = change, .open = open_connection, .data = data,
         .close = close_connection, .save = save, .restore = restore, .flow_bytes = sizeof(struct kept),
         .keeps = BRAID_KEEPS_CONNECTIONS,
         .about = "finds words in TCP connections", .reasons = "word",
         .events = "WORD extends FLOW { number: u32, offset: size }\n"
                   "SENT extends FLOW { bytes: size, missing: size }");
