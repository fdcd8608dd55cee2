"""The endpoints that change models: /learn."""

from fastapi import FastAPI, Request, Response

from spacenet.serve import messages
from spacenet.serve.jobs import TrainingJob
from spacenet.serve.messages import RequestError
from spacenet.serve.models import Hosted
from spacenet.serve.options import RESIZE
from spacenet.serve.reading import FORM, NPZ, Content, read_task
from spacenet.serve.routes import Context, add_model_route, content_of, describe_body, respond

NO_LEARNING = "this service does not learn; it can be started with --allow-learn"
OF_IMAGES = " For models with an encoder also images as bytes, (n, h, w), (n, 3, h, w) or (n, h, w, 3)."


class Teaching:
    """Reads tasks and starts to learn them."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def learn(self, request: Request) -> Response:
        hosted, content = self.context.hosted(request), content_of(request)
        if hosted.jobs is None:
            raise RequestError(NO_LEARNING, 403)
        hosted.jobs.check_free()  # before the body is received
        async with self.context.bodies.receive(request) as body:
            return await self.context.in_thread(self._learn, hosted, hosted.jobs, body, content)

    def _learn(self, hosted: Hosted, jobs: TrainingJob, body: bytes, content: Content) -> Response:
        served = hosted.store.current
        x, y = served.check_task(*read_task(body, content, served, self.context.bodies.max_bytes))
        return respond(jobs.start(x, y), 202)

    async def job(self, request: Request) -> Response:
        jobs = self.context.hosted(request).jobs
        return respond(jobs.job if jobs else messages.Job())


def add_teaching_routes(app: FastAPI, context: Context) -> None:
    """Add POST /learn and GET /learn."""
    teaching = Teaching(context)
    task = dict.fromkeys(NPZ, "Arrays x and y, as numpy.savez writes them." + OF_IMAGES)
    task |= dict.fromkeys(FORM, "Image files. The name of each one's field is its label.")
    body = describe_body(messages.LearnRequest, task, [RESIZE])
    add_model_route(app, "POST /learn 202", teaching.learn, messages.Job, "Learn a task", body)
    add_model_route(app, "GET /learn", teaching.job, messages.Job, "The state of the last training job")
