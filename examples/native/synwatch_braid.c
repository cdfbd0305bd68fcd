/* synwatch: how many connections does each host open, and how many of them are answered?
 *
 *     synwatch in.pcap out.pcap [limit]
 *
 * Copies a capture, but for connection attempts of hosts that have more than LIMIT unanswered ones. Hosts that
 * reach the limit, and a table at the end, go to standard error. Ethernet and IPv4 only; the rest is copied.
 */
#include <arpa/inet.h>
#ifdef BRAID_NF_FUNCTION
#include <braid_nf.h>
#else
#include <pcap/pcap.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096

enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };

struct host {
  struct host *next;
  uint32_t addr;
  unsigned long opened, answered, refused;
};

struct watch {
  struct host *buckets[BUCKETS];
  unsigned long limit, packets;
};

static struct host *find_host(struct watch *w, uint32_t addr) {
  struct host **at = &w->buckets[(addr * 2654435761u) >> 20];
  while (*at && (*at)->addr != addr) at = &(*at)->next;
  if (!*at) {
    *at = calloc(1, sizeof **at);
    if (!*at) {
      fprintf(stderr, "synwatch: out of memory\n");
      exit(1);
    }
    (*at)->addr = addr;
  }
  return *at;
}

static const char *show(uint32_t addr) {
  struct in_addr in = {addr};
  return inet_ntoa(in);
}

/* Whether the packet is to be copied. */
static int wanted(struct watch *w, const uint8_t *p, size_t len) {
  const uint8_t *ip = p + 14, *tcp;
  uint32_t src, dst;
  size_t ihl;
  w->packets++;
  if (len < 14 + 20 || p[12] != 0x08 || p[13] != 0x00) return 1; /* no IPv4 */
  ihl = (size_t)(ip[0] & 15) * 4;
  if (ip[0] >> 4 != 4 || ihl < 20 || ip[9] != 6) return 1; /* no TCP */
  if ((ip[6] & 0x1f) || ip[7]) return 1;                   /* a later fragment */
  if (len < 14 + ihl + 20) return 1;
  tcp = ip + ihl;
  memcpy(&src, ip + 12, 4);
  memcpy(&dst, ip + 16, 4);
  if ((tcp[13] & (SYN | ACK)) == SYN) {
    struct host *h = find_host(w, src);
    if (h->opened - h->answered >= w->limit) {
      h->refused++;
      return 0;
    }
    h->opened++;
    if (h->opened - h->answered == w->limit)
      fprintf(stderr, "synwatch: %s has %lu unanswered connections\n", show(src), w->limit);
  } else if ((tcp[13] & (SYN | ACK)) == (SYN | ACK)) {
    struct host *h = find_host(w, dst);
    if (h->answered < h->opened) h->answered++;
  }
  return 1;
}

static void report(struct watch *w) {
  size_t i;
  for (i = 0; i < BUCKETS; i++) {
    struct host *h;
    for (h = w->buckets[i]; h; h = h->next)
      fprintf(stderr, "%-15s opened %lu answered %lu refused %lu\n", show(h->addr), h->opened, h->answered, h->refused);
  }
}

#ifdef BRAID_NF_FUNCTION
static int32_t create(braid_host *host, void **self) {
  uint64_t limit = 10;
  struct watch *w = *self = calloc(1, sizeof *w);
  if (!w) return braid_fail(host, "out of memory");
  braid_config(host, "limit", &limit);
  w->limit = limit;
  return 0;
}

static int32_t packet(void *self, braid_packet *p) {
  size_t len;
  const uint8_t *bytes = braid_bytes(p, &len);
  return wanted(self, bytes, len) ? BRAID_FORWARD : BRAID_DROP(0);
}

static void destroy(void *self) { report(self), free(self); }

BRAID_NF(synwatch, .create = create, .packet = packet, .destroy = destroy, .reasons = "too many unanswered");
#else
int main(int argc, char **argv) {
  static struct watch w;
  char error[PCAP_ERRBUF_SIZE];
  struct pcap_pkthdr *header;
  const uint8_t *bytes;
  pcap_t *in;
  pcap_dumper_t *out;
  if (argc < 3) {
    fprintf(stderr, "usage: synwatch in.pcap out.pcap [limit]\n");
    return 2;
  }
  w.limit = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
  in = pcap_open_offline(argv[1], error);
  if (!in) {
    fprintf(stderr, "synwatch: %s\n", error);
    return 1;
  }
  out = pcap_dump_open(in, argv[2]);
  if (!out) {
    fprintf(stderr, "synwatch: %s\n", pcap_geterr(in));
    return 1;
  }
  while (pcap_next_ex(in, &header, &bytes) == 1)
    if (wanted(&w, bytes, header->caplen)) pcap_dump((uint8_t *)out, header, bytes);
  pcap_dump_close(out);
  report(&w);
  return 0;
}
#endif
