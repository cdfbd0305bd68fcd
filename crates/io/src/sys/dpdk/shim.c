// What Braid asks of DPDK, as plain functions. Most of it is inline code in DPDK's headers, or
// structures that differ from release to release: a C compiler must see them.
//
// Functions that return `int` return 0, or a negative error number.

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_version.h>

// The most frames that one call moves.
#define BURST 64

// Frames that each thread keeps for itself before it shares them.
#define CACHE 256

// The descriptors of a queue, where the driver does not ask for others.
#define DESCRIPTORS 1024

// A frame on its way: its mbuf, the start of its memory, and where in the memory its bytes are.
struct braid_dpdk_frame {
	struct rte_mbuf *mbuf;
	uint8_t *memory;
	uint32_t start;
	uint32_t length;
	// The number of mbufs that hold it.
	uint32_t parts;
};

struct braid_dpdk_facts {
	const char *driver;
	// The network device of the kernel behind it, or 0.
	uint32_t index;
};

struct braid_dpdk_counters {
	// Frames that were lost because they were not read in time, or had no memory.
	uint64_t missed;
	// Frames that the driver accepted and could not send.
	uint64_t unsent;
};

// The messages of DPDK since the last look at them. What does not fit is left out.
static char messages[4096];
static size_t messages_length;
static pthread_mutex_t messages_lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t keep(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	pthread_mutex_lock(&messages_lock);
	size_t fits = RTE_MIN(length, sizeof(messages) - messages_length);
	memcpy(messages + messages_length, text, fits);
	messages_length += fits;
	pthread_mutex_unlock(&messages_lock);
	return length;
}

// Moves the messages to memory that has room for `room` bytes. Returns their length.
size_t braid_dpdk_messages(char *to, size_t room)
{
	pthread_mutex_lock(&messages_lock);
	size_t length = RTE_MIN(room, messages_length);
	memcpy(to, messages, length);
	messages_length = 0;
	pthread_mutex_unlock(&messages_lock);
	return length;
}

// Starts the EAL. It keeps the arguments.
int braid_dpdk_start(int count, char **arguments)
{
	FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = keep });

	if (stream == NULL || rte_openlog_stream(stream) != 0)
		return -ENOMEM;
	rte_log_set_global_level(RTE_LOG_ERR);
	return rte_eal_init(count, arguments) < 0 ? -rte_errno : 0;
}

// Whether devices see physical addresses.
int braid_dpdk_is_physical(void)
{
	return rte_eal_iova_mode() == RTE_IOVA_PA;
}

const char *braid_dpdk_version(void)
{
	return rte_version();
}

// Memory that devices can reach, of zeros; NULL if there is too little.
void *braid_dpdk_allocate(size_t bytes)
{
	return rte_zmalloc(NULL, bytes, 4096);
}

void braid_dpdk_free(void *memory)
{
	rte_free(memory);
}

struct place {
	uint8_t *memory;
	uint32_t size;
};

// Lets an mbuf stand for its frame. It counts as one with memory of its own, so that drivers treat
// it in their fastest way: none of them computes the place of this memory from that of the mbuf.
static void stand_for(struct rte_mempool *pool, void *context, void *object, unsigned number)
{
	const struct place *place = context;
	struct rte_mbuf *mbuf = object;

	memset(mbuf, 0, sizeof(*mbuf));
	mbuf->buf_addr = place->memory + (size_t)number * place->size;
	rte_mbuf_iova_set(mbuf, rte_mem_virt2iova(mbuf->buf_addr));
	mbuf->buf_len = place->size;
	mbuf->data_off = RTE_PKTMBUF_HEADROOM;
	mbuf->pool = pool;
	mbuf->nb_segs = 1;
	mbuf->port = RTE_MBUF_PORT_INVALID;
	rte_mbuf_refcnt_set(mbuf, 1);
}

// A pool of mbufs, one for each of `count` frames of `size` bytes from `memory` on. NULL if there is
// too little memory.
struct rte_mempool *braid_dpdk_pool(const char *name, uint8_t *memory, uint32_t count, uint32_t size)
{
	struct rte_pktmbuf_pool_private facts = { .mbuf_data_room_size = size };
	struct place place = { memory, size };

	return rte_mempool_create(name, count, sizeof(struct rte_mbuf), CACHE, sizeof(facts),
			rte_pktmbuf_pool_init, &facts, stand_for, &place, SOCKET_ID_ANY, 0);
}

void braid_dpdk_pool_end(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}

// Puts an mbuf into its pool, for drivers to take.
void braid_dpdk_give(struct rte_mempool *pool, struct rte_mbuf *mbuf)
{
	rte_mempool_put(pool, mbuf);
}

// Takes an mbuf out of the pool, and says where its memory starts. NULL if there is none.
struct rte_mbuf *braid_dpdk_take(struct rte_mempool *pool, uint8_t **memory)
{
	void *object;

	if (rte_mempool_get(pool, &object) != 0)
		return NULL;
	*memory = ((struct rte_mbuf *)object)->buf_addr;
	return object;
}

// Finds the port of a device, and attaches the device if it is new.
int braid_dpdk_attach(const char *device, uint16_t *port)
{
	struct rte_dev_iterator iterator;
	int error = rte_dev_probe(device);

	if (error < 0 && error != -EEXIST)
		return error;
	RTE_ETH_FOREACH_MATCHING_DEV(*port, device, &iterator) {
		rte_eth_iterator_cleanup(&iterator);
		return 0;
	}
	return -ENODEV;
}

// Ends a device.
void braid_dpdk_detach(uint16_t port)
{
	struct rte_eth_dev_info info;
	int is_known = rte_eth_dev_info_get(port, &info) == 0;

	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	if (is_known)
		rte_dev_remove(info.device);
}

// Starts a port with one queue each way, in promiscuous mode where it has one.
int braid_dpdk_begin(uint16_t port, struct rte_mempool *pool, struct braid_dpdk_facts *facts)
{
	struct rte_eth_conf configuration = { 0 };
	struct rte_eth_dev_info info;
	uint16_t receiving = DESCRIPTORS, sending = DESCRIPTORS;
	int socket = rte_eth_dev_socket_id(port);
	int error = rte_eth_dev_info_get(port, &info);

	if (error == 0)
		error = rte_eth_dev_configure(port, 1, 1, &configuration);
	if (error == 0)
		error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receiving, &sending);
	if (error == 0)
		error = rte_eth_rx_queue_setup(port, 0, receiving, socket, NULL, pool);
	if (error == 0)
		error = rte_eth_tx_queue_setup(port, 0, sending, socket, NULL);
	if (error == 0)
		error = rte_eth_dev_start(port);
	if (error != 0)
		return error;
	rte_eth_promiscuous_enable(port);
	facts->driver = info.driver_name;
	facts->index = info.if_index;
	return 0;
}

// What the device is on its link.
int braid_dpdk_ethernet(uint16_t port, uint8_t *mac, uint16_t *mtu)
{
	struct rte_ether_addr address;
	int error = rte_eth_macaddr_get(port, &address);

	memcpy(mac, address.addr_bytes, sizeof(address.addr_bytes));
	return error != 0 ? error : rte_eth_dev_get_mtu(port, mtu);
}

// 1: the link is up, 0: it is down, -1: the device is gone.
int braid_dpdk_link(uint16_t port)
{
	struct rte_eth_link link = { 0 };

	if (rte_eth_dev_is_removed(port))
		return -1;
	return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void braid_dpdk_count(uint16_t port, struct braid_dpdk_counters *counters)
{
	struct rte_eth_stats stats = { 0 };

	rte_eth_stats_get(port, &stats);
	counters->missed = stats.imissed + stats.rx_nombuf;
	counters->unsent = stats.oerrors;
}

// Receives at most `most` frames, and at most BURST.
uint16_t braid_dpdk_receive(uint16_t port, struct braid_dpdk_frame *frames, uint16_t most)
{
	struct rte_mbuf *found[BURST];
	uint16_t count = rte_eth_rx_burst(port, 0, found, RTE_MIN(most, BURST));

	for (uint16_t at = 0; at < count; at++) {
		struct rte_mbuf *mbuf = found[at];

		frames[at] = (struct braid_dpdk_frame){
			.mbuf = mbuf,
			.memory = mbuf->buf_addr,
			.start = mbuf->data_off,
			.length = mbuf->pkt_len,
			.parts = mbuf->nb_segs,
		};
	}
	return count;
}

// Copies the bytes of all parts of a frame to memory that has room for them, and ends the frame.
void braid_dpdk_join(struct rte_mbuf *mbuf, uint8_t *to)
{
	for (const struct rte_mbuf *part = mbuf; part != NULL; part = part->next) {
		memcpy(to, rte_pktmbuf_mtod(part, const uint8_t *), part->data_len);
		to += part->data_len;
	}
	rte_pktmbuf_free(mbuf);
}

void braid_dpdk_drop(struct rte_mbuf *mbuf)
{
	rte_pktmbuf_free(mbuf);
}

// Sends frames of one part, at most BURST. Returns the number of frames, from the first on, that
// belong to the driver now.
uint16_t braid_dpdk_send(uint16_t port, const struct braid_dpdk_frame *frames, uint16_t count)
{
	struct rte_mbuf *leaving[BURST];
	uint16_t sent = 0, more;

	count = RTE_MIN(count, BURST);
	for (uint16_t at = 0; at < count; at++) {
		struct rte_mbuf *mbuf = leaving[at] = frames[at].mbuf;

		rte_pktmbuf_reset(mbuf);
		mbuf->data_off = frames[at].start;
		mbuf->data_len = mbuf->pkt_len = frames[at].length;
	}
	do {
		more = rte_eth_tx_burst(port, 0, leaving + sent, count - sent);
		sent += more;
	} while (more > 0 && sent < count);
	return sent;
}

// Gives the thread a number, which lets it keep mbufs for itself. Does nothing if there are too many
// threads.
void braid_dpdk_enter(void)
{
	rte_thread_register();
}

void braid_dpdk_leave(void)
{
	rte_thread_unregister();
}
