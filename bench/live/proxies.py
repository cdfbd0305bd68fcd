"""Proxies for HTTP between real clients and servers: pages that are compressed on their way, and pages
that are kept and given again.

    wrk (core 0) - lan0 [proxy, core 1] wan0 - nginx (core 0)
"""

import subprocess

import chains
from balancers import ADDRESS, Hosts, braid, busy_us, haproxy_http, ready
from bed import cores
from subjects import end, need

TEXT = "".join(f"Line {at * at} of a long text.\n" for at in range(400))
TAKES = ("-H", "Accept-Encoding: gzip")


def nginx(hosts, more):
    """nginx as a proxy with one process. Connections to servers are kept."""
    need("nginx", "nginx")
    hosts.route()
    hosts.ip("dut", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
    servers = " ".join(f"server {host}:80;" for host in chains.BACKENDS)
    (hosts.folder / "proxy.conf").write_text(f"""
        daemon off; master_process off; user root; pid {hosts.folder}/proxy.pid;
        error_log {hosts.folder}/proxy.log; events {{ worker_connections 1024; }}
        http {{ access_log off; keepalive_requests 1000000;
          proxy_cache_path {hosts.folder}/kept keys_zone=kept:10m max_size=64m;
          upstream servers {{ {servers} keepalive 64; keepalive_requests 1000000; }}
          server {{ listen {ADDRESS}:80;
            location / {{ proxy_pass http://servers; proxy_http_version 1.1;
              proxy_set_header Connection ""; {more} }} }} }}""")
    words = ("taskset", "-c", str(cores(1)[0]), "nginx", "-c", str(hosts.folder / "proxy.conf"))
    return hosts.start("dut", *words, stderr=subprocess.STDOUT)


def nginx_gzip(hosts, _):
    return nginx(hosts, "gzip on; gzip_proxied any; gzip_comp_level 1; gzip_types text/plain;")


def nginx_kept(hosts, _):
    """Compresses, too: what it keeps is not compressed, so it does that each time."""
    return nginx(hosts, "gzip on; gzip_proxied any; gzip_comp_level 1; gzip_types text/plain; "
                        "proxy_cache kept;")


def haproxy_gzip(hosts, _):
    return haproxy_http(hosts, """
  compression algo gzip
  compression type text/plain
""")


PROXIES = {"nginx_gzip": nginx_gzip, "haproxy_gzip": haproxy_gzip,
           "braid_gzip_af_packet": braid("af_packet", chains.proxied),
           "braid_gzip_xdp": braid("xdp", chains.proxied),
           "nginx_kept": nginx_kept,
           "braid_kept_af_packet": braid("af_packet", chains.kept),
           "braid_kept_xdp": braid("xdp", chains.kept)}


def measure(name, command, seconds):
    """Requests a second for a page of 10 KB, which leaves compressed, and the time that the proxy's
    core spends on each."""
    with Hosts() as hosts:
        page = hosts.folder / "kept" if "_kept" in name else hosts.folder
        page.mkdir(exist_ok=True)
        (page / "page").write_text(TEXT)
        process = PROXIES[name](hosts, command)
        ready(hosts)
        path = str((page / "page").relative_to(hosts.folder))
        found = hosts.run("client", "curl", "-sS", *TAKES, f"http://{ADDRESS}/{path}", "-o",
                          str(hosts.folder / "body"), "-w", "%{size_download}")
        assert int(found) < len(TEXT) / 2, f"{name}: a page of {len(TEXT)} bytes came as {found}"
        before = busy_us(cores(1)[0])
        requests, _, late, errors = hosts.wrk(path, seconds, *TAKES)
        spent = (busy_us(cores(1)[0]) - before) / (requests * seconds)
        rate, _, opening, more = hosts.wrk(path, seconds, *TAKES, "-H", "Connection: close")
        end(process)
        return {"proxy": name, "requests_per_s": round(requests), "request_us": late[50],
                "request_p99_us": late[99], "core_us_per_request": round(spent, 1),
                "connections_per_s": round(rate), "connection_us": opening[50],
                "errors": errors + more}
