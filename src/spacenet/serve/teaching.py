"""The endpoints that change models: /learn and /edit, and the jobs that do it."""

from fastapi import FastAPI, Request, Response

from spacenet.serve import messages
from spacenet.serve.jobs import Jobs
from spacenet.serve.messages import RequestError
from spacenet.serve.models import Hosted
from spacenet.serve.options import RESIZE
from spacenet.serve.reading import FORM, NPZ, Content, read_edit, read_task
from spacenet.serve.routes import Context, add_model_route, content_of, describe_body, respond

NO_LEARNING = "this service does not learn; it can be started with --allow-learn"
OF_IMAGES = " For models with an encoder also images as bytes, (n, h, w), (n, 3, h, w) or (n, h, w, 3)."
NUMBER = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
OF_NUMBER = {"parameters": [NUMBER]}


class Teaching:
    """Reads tasks and edits, makes jobs of them, and says what becomes of these."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def learn(self, request: Request) -> Response:
        hosted, content = self.context.hosted(request), content_of(request)
        jobs = _jobs_of(hosted)
        jobs.check_room()  # before the body is received
        async with self.context.bodies.receive(request) as body:
            return await self.context.in_thread(self._learn, hosted, jobs, body, content)

    def _learn(self, hosted: Hosted, jobs: Jobs, body: bytes, content: Content) -> Response:
        x, y = read_task(body, content, hosted.store.current, self.context.bodies.max_bytes)
        return respond(jobs.submit_learn(x, y), 202)

    async def edit(self, request: Request) -> Response:
        jobs, content = _jobs_of(self.context.hosted(request)), content_of(request)
        jobs.check_room()
        async with self.context.bodies.receive(request) as body:
            return await self.context.in_thread(_edit, jobs, body, content)

    async def last(self, request: Request) -> Response:
        jobs = self.context.hosted(request).jobs
        return respond(jobs.last if jobs else messages.Job())

    async def list(self, request: Request) -> Response:
        jobs = self.context.hosted(request).jobs
        return respond(messages.JobList(jobs=list(jobs.list()) if jobs else []))

    async def get(self, request: Request) -> Response:
        return respond(_jobs_of(self.context.hosted(request)).get(_number(request)))

    async def cancel(self, request: Request) -> Response:
        jobs = _jobs_of(self.context.hosted(request))
        return respond(await self.context.in_thread(jobs.cancel, _number(request)))


def add_teaching_routes(app: FastAPI, context: Context) -> None:
    """Add /learn, /edit and /jobs."""
    teaching, form = Teaching(context), messages.Job
    task = dict.fromkeys(NPZ, "Arrays x and y, as numpy.savez writes them." + OF_IMAGES)
    task |= dict.fromkeys(FORM, "Image files. The name of each one's field is its label.")
    body = describe_body(messages.LearnRequest, task, [RESIZE])
    add_model_route(app, "POST /learn 202", teaching.learn, form, "Learn a task", body)
    add_model_route(app, "GET /learn", teaching.last, form, "The last job that learns")
    edit = describe_body(messages.EditRequest, {})
    add_model_route(app, "POST /edit 202", teaching.edit, form, "Rename, merge or forget classes, or undo", edit)
    add_model_route(app, "GET /jobs", teaching.list, messages.JobList, "List the jobs")
    add_model_route(app, "GET /jobs/{number}", teaching.get, form, "The state of a job", OF_NUMBER)
    add_model_route(app, "DELETE /jobs/{number}", teaching.cancel, form, "Cancel a job that waits or learns", OF_NUMBER)


def _jobs_of(hosted: Hosted) -> Jobs:
    if hosted.jobs is None:
        raise RequestError(NO_LEARNING, 403)
    return hosted.jobs


def _edit(jobs: Jobs, body: bytes, content: Content) -> Response:
    request = read_edit(body, content)
    single = () if request.label is None else (request.label,)
    labels = (*single, *(request.labels or ()))
    into, other = (request.new, request.into) if request.action == "rename" else (request.into, request.new)
    if other is not None:
        raise RequestError("new goes with rename, and into with merge")
    return respond(jobs.submit_edit(request.action, labels, into, request.keep_undo), 202)


def _number(request: Request) -> int:
    text = str(request.path_params["number"])
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise RequestError(f"there is no job {text[:20]!r}; GET /jobs lists the last ones", 404)
    return int(text)
