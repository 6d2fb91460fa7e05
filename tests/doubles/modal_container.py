"""A Modal container without Modal: the SDK's own entrypoint on a deployed server's definition, as a child process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from modal_proto import api_pb2

PATIENCE = 60


def container_arguments(function):
    """What Modal's worker tells a container about the server that it is to run."""
    handle = api_pb2.FunctionHandleMetadata(
        function_name=function.function_name, function_type=api_pb2.Function.FUNCTION_TYPE_FUNCTION
    )
    objects = [api_pb2.Object(object_id="fu-1", function_handle_metadata=handle)]
    for dependency in function.object_dependencies:
        objects.append(api_pb2.Object(object_id=dependency.object_id))
        if dependency.object_id.startswith("vo-"):
            objects[-1].volume_metadata.version = api_pb2.VOLUME_FS_VERSION_V2
    return api_pb2.ContainerArguments(
        task_id="ta-1",
        function_id="fu-1",
        app_id="ap-1",
        function_def=function,
        app_layout=api_pb2.AppLayout(objects=objects, function_ids={function.function_name: "fu-1"}),
    )


class ModalContainer:
    """A running container.

    Attributes:
        process: Its first process, which stands for the container.
        lines: What it and its children wrote.
    """

    def __init__(self, function, plane_url, folder, **environment):
        arguments = folder / "arguments.bin"
        arguments.write_bytes(container_arguments(function).SerializeToString())
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENJEV_", "MODAL_"))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "modal._container_entrypoint"],
            cwd=folder,
            env={
                **kept,
                "MODAL_CONTAINER_ARGUMENTS_PATH": str(arguments),
                "MODAL_CONFIG_PATH": str(folder / "none.toml"),
                "MODAL_IS_REMOTE": "1",
                "MODAL_SERVER_URL": plane_url,
                "MODAL_TASK_ID": "ta-1",
                "NO_COLOR": "1",
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def log(self):
        return "\n".join(self.lines)

    def wait_for(self, words):
        """Wait for a line that has these words."""
        end = time.monotonic() + PATIENCE
        while not any(words in line for line in self.lines):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.05)

    def stop(self):
        """Stop it as Modal does; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self):
        """Wait for its end; returns the exit status."""
        return self.process.wait(PATIENCE)


@contextmanager
def modal_container(function, plane_url, folder, **environment):
    """Run a container; killed at the end if it still runs."""
    container = ModalContainer(function, plane_url, Path(folder), **environment)
    try:
        yield container
    finally:
        if container.process.poll() is None:
            container.process.kill()
            container.process.wait()


def listens(port):
    """Whether something accepts connections there."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0
