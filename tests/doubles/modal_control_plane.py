# ruff: noqa: N802 - methods have the names of the RPCs that they answer
"""Modal's control plane as far as a deploy, a run and a container need it, on loopback.

Built on the SDK's own servicer: what is not answered here is refused with UNIMPLEMENTED and recorded, so that a test
sees what a newer SDK asks for.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import contextmanager

import grpclib
from attrs import define, field
from google.protobuf import empty_pb2
from grpclib.server import Server
from modal_proto import api_pb2
from modal_proto.api_grpc import ModalClientBase


@define
class Registered:
    """What was told to the control plane.

    Attributes:
        calls: Method names, in order.
        refused: Those that are not answered here.
        functions: Name to definition.
        images, secrets, volumes: As they were asked for.
        files: Paths of the files that were uploaded, in the container.
        published: Deployed, and not only run.
        stopped: The app was stopped.
        committed: Ids of volumes that a container committed.
        results: What containers reported as their failure.
    """

    calls: list = field(factory=list)
    refused: list = field(factory=list)
    functions: dict = field(factory=dict)
    images: list = field(factory=list)
    secrets: list = field(factory=list)
    volumes: list = field(factory=list)
    files: set = field(factory=set)
    published: bool = False
    stopped: bool = False
    committed: list = field(factory=list)
    results: list = field(factory=list)


class ControlPlane:
    """Answers; ``url_of_server`` is the URL that deployed servers get."""

    def __init__(self, url_of_server):
        self.registered = Registered()
        self.url_of_server = url_of_server

    async def ClientHello(self, _request):
        return api_pb2.ClientHelloResponse()

    async def AuthTokenGet(self, _request):
        return api_pb2.AuthTokenGetResponse(token="h.e30.s")

    async def EnvironmentGetOrCreate(self, request):
        return api_pb2.EnvironmentGetOrCreateResponse(
            environment_id="en-1",
            metadata=api_pb2.EnvironmentMetadata(
                name=request.deployment_name or "main",
                settings=api_pb2.EnvironmentSettings(image_builder_version="2025.06"),
            ),
        )

    async def AppCreate(self, _request):
        return api_pb2.AppCreateResponse(app_id="ap-1", app_page_url="http://127.0.0.1/app")

    async def AppGetOrCreate(self, _request):
        return api_pb2.AppGetOrCreateResponse(app_id="ap-1")

    async def AppGetByDeploymentName(self, _request):
        return api_pb2.AppGetByDeploymentNameResponse()

    async def AppGetLayout(self, _request):
        return api_pb2.AppGetLayoutResponse()

    async def AppHeartbeat(self, _request):
        return empty_pb2.Empty()

    async def AppPublish(self, request):
        self.registered.published = request.app_state == api_pb2.APP_STATE_DEPLOYED
        return api_pb2.AppPublishResponse(url="http://127.0.0.1/app")

    async def AppClientDisconnect(self, _request):
        self.registered.stopped = True
        return empty_pb2.Empty()

    async def AppStop(self, _request):
        self.registered.stopped = True
        return empty_pb2.Empty()

    async def MountGetOrCreate(self, request):
        self.registered.files.update(file.filename for file in request.files)
        return api_pb2.MountGetOrCreateResponse(mount_id="mo-1")

    async def MountBatchedCheckExistence(self, _request):
        return api_pb2.MountBatchedCheckExistenceResponse()  # no file is missing

    async def MountPutFile(self, _request):
        return api_pb2.MountPutFileResponse(exists=True)

    async def ImageGetOrCreate(self, request):
        self.registered.images.append(request.image)
        number = len(self.registered.images)
        return api_pb2.ImageGetOrCreateResponse(
            image_id=f"im-{number}",
            result=api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS),
            metadata=api_pb2.ImageMetadata(image_builder_version="2025.06"),
        )

    async def SecretGetOrCreate(self, request):
        self.registered.secrets.append(request)
        return api_pb2.SecretGetOrCreateResponse(secret_id=f"st-{len(self.registered.secrets)}")

    async def VolumeGetOrCreate(self, request):
        self.registered.volumes.append(request)
        return api_pb2.VolumeGetOrCreateResponse(
            volume_id=f"vo-{len(self.registered.volumes)}", version=api_pb2.VOLUME_FS_VERSION_V2
        )

    async def FunctionPrecreate(self, request):
        return api_pb2.FunctionPrecreateResponse(function_id="fu-1", handle_metadata=self.handle(request.function_name))

    async def FunctionCreate(self, request):
        function = request.function
        self.registered.functions[function.function_name] = function
        ranked = api_pb2.FunctionData.RankedFunction(rank=0, function=function)
        return api_pb2.FunctionCreateResponse(
            function_id="fu-1",
            function=function,
            function_data=api_pb2.FunctionData(function_name=function.function_name, ranked_functions=[ranked]),
            handle_metadata=self.handle(function.function_name),
        )

    def handle(self, name):
        return api_pb2.FunctionHandleMetadata(
            function_name=name,
            function_type=api_pb2.Function.FUNCTION_TYPE_FUNCTION,
            is_method=False,
            _experimental_flash_urls=[self.url_of_server] if self.url_of_server else [],
        )

    async def ContainerServerLifecycleReady(self, _request):
        return empty_pb2.Empty()

    async def VolumeCommit(self, request):
        self.registered.committed.append(request.volume_id)
        return api_pb2.VolumeCommitResponse()

    async def TaskResult(self, request):
        self.registered.results.append(request.result)
        return empty_pb2.Empty()


def servicer(plane):
    """The SDK's servicer with every method answered by ``plane``, or refused."""

    def unary(name):
        async def handle(_self, stream):
            request = await stream.recv_message()
            plane.registered.calls.append(name)
            answer = getattr(plane, name, None)
            if answer is None:
                plane.registered.refused.append(name)
                raise grpclib.GRPCError(grpclib.Status.UNIMPLEMENTED, f"{name} is not answered here")
            await stream.send_message(await answer(request))

        return handle

    async def no_logs(_self, stream):
        await stream.recv_message()
        await asyncio.sleep(0.05)
        await stream.send_message(api_pb2.TaskLogsBatch(app_done=plane.registered.stopped))

    names = [name for name, member in inspect.getmembers(ModalClientBase) if getattr(member, "__isabstractmethod__", 0)]
    methods = {**{name: unary(name) for name in names}, "AppGetLogs": no_logs}
    return type("Servicer", (ModalClientBase,), methods)()


@contextmanager
def control_plane(url_of_server=None):
    """Serve a control plane; gives its URL and what is registered with it."""
    plane = ControlPlane(url_of_server)
    loop = asyncio.new_event_loop()
    started = threading.Event()
    found = {}

    async def main():
        server = Server([servicer(plane)])
        await server.start("127.0.0.1", 0)
        found["port"] = server._server.sockets[0].getsockname()[1]
        found["server"] = server
        started.set()
        await server.wait_closed()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield f"http://127.0.0.1:{found['port']}", plane.registered
    finally:
        loop.call_soon_threadsafe(found["server"].close)
        thread.join(10)
        loop.close()
