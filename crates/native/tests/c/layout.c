/* The layout of version 1 of the interface, which never changes. A test builds this file; nothing runs. */
#include <braid_nf.h>

#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)

SIZE(braid_wide, 16);
SIZE(braid_action, 48);
AT(braid_action, value, 8);
AT(braid_action, bytes, 40);
SIZE(braid_guard, 32);
SIZE(braid_item, 32);
SIZE(braid_profile, 24);
SIZE(braid_value, 32);
AT(braid_nf, flow_scope, 16);
AT(braid_nf, reasons, 48);
AT(braid_nf, profile, 64);
AT(braid_nf, packet, 88);
AT(braid_nf, dump, 112);
AT(braid_nf, save, 120);
AT(braid_nf, restore, 128);
AT(braid_nf, events, 136);
AT(braid_nf, tags, 144);
AT(braid_nf, sends, 152);
AT(braid_nf, keeps, 156);
AT(braid_nf, open, 160);
AT(braid_nf, close, 176);
SIZE(braid_nf, 184);
AT(braid_connection, flow, 8);
AT(braid_connection, server, 32);
AT(braid_connection, client_port, 48);
SIZE(braid_connection, 56);
AT(braid_data, bytes, 8);
AT(braid_data, offset, 24);
AT(braid_data, missing, 32);
SIZE(braid_data, 40);
AT(braid_api, flow, 8);
AT(braid_api, config, 120);
AT(braid_api, add_header_action, 200);
AT(braid_api, dump_entry, 240);
AT(braid_api, next_flow, 248);
AT(braid_api, save_bytes, 256);
AT(braid_api, event_named, 264);
AT(braid_api, publish, 272);
AT(braid_api, set_tag, 296);
AT(braid_api, send, 304);
AT(braid_api, send_from_timer, 312);
AT(braid_api, share, 320);
SIZE(braid_api, 328);
