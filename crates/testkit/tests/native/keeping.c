/* Functions that say what they keep, and that do what the analysis for workers does not follow. */
#include <braid_nf.h>

static int32_t forward(void *self, braid_packet *p) {
  (void)self, (void)p;
  return BRAID_FORWARD;
}

static const braid_profile adds = {"", "", BRAID_MAY_ADD, 0};
BRAID_NF(wrapper, .packet = forward, .profile = &adds, .keeps = BRAID_KEEPS_NOTHING);

static const braid_profile writes_port = {"", "l4.dport", 0, 0};
BRAID_NF(port_writer, .packet = forward, .profile = &writes_port, .keeps = BRAID_KEEPS_NOTHING);
static const braid_profile writes_ttl = {"", "ip.ttl", 0, 0};
BRAID_NF(ttl_writer, .packet = forward, .profile = &writes_ttl, .keeps = BRAID_KEEPS_NOTHING);

static const braid_profile reads = {"*", "", 0, 0};
BRAID_NF(sender, .packet = forward, .profile = &reads, .keeps = BRAID_KEEPS_FLOWS, .sends = 1);
