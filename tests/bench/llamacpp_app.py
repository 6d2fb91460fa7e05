"""llama.cpp's own server by itself, as a process to measure: `llamacpp_app.py MODEL PORT [settings]`.

What is not given is llama.cpp's default. The waiting of its threads is set by the environment.
"""

from __future__ import annotations

import argparse
import signal

import xllamacpp

SILENT = -1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("port", type=int)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--batch", type=int, help="tokens computed at once")
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--context", type=int, default=8192)
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.verbosity = SILENT
    params.hostnames, params.port = ["127.0.0.1"], options.port
    params.n_ctx = options.context
    params.n_parallel = options.slots
    # As llama-server does by default where it chooses the slots itself: they share one cache.
    params.kv_unified = options.slots > 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    if options.batch:
        params.n_batch = params.n_ubatch = options.batch
    params.cache_ram_mib = 0
    params.ui = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.sigwait([signal.SIGTERM, signal.SIGINT])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    main()
