#!/usr/bin/env python3
"""A FlowFabric worker in Python, with the package of clients/python.

    flowfabric dev --http 127.0.0.1:8080
    pip install ./clients/python
    python3 examples/worker-python/worker.py
    curl -d '{"kind":"story","input":{"about":"a lighthouse"}}' -H 'Content-Type: application/json' http://127.0.0.1:8080/v1/executions
"""

import asyncio
import logging
import os
import random

from flowfabric import Retry, Worker

WORDS = "the light turned over the dark water and nobody on the shore knew who kept it".split()

worker = Worker(
    os.environ.get("FLOWFABRIC_API", "http://127.0.0.1:8080"),
    os.environ.get("FLOWFABRIC_TOKEN", ""),
    concurrency=4,
    lease=float(os.environ.get("LEASE_SECONDS", "30")),
)


@worker.handler("story")
async def story(task, request):
    """Streams a text word by word. The step survives a crash of the worker. It pays by the word."""
    paid = await task.reserve(words=len(WORDS))
    title = await task.step("title", lambda: f"About {request['about']}, number {random.randrange(1000)}")
    await task.frame(title + ":", type="title")
    for i, word in enumerate(WORDS):
        await task.frame(" " + word)
        await task.progress(100 * (i + 1) // len(WORDS))
        await asyncio.sleep(float(request.get("pause", 0.05)))
    await task.settle(paid, words=len(WORDS))
    return {"title": title, "words": len(WORDS)}


@worker.handler("publish")
async def publish(task, request):
    """Fails once, then asks for an approval, and goes on when somebody gave it."""
    if request.get("fail_first") and task.attempt == 1:
        raise Retry("the printer was out of ink", category="ink", after=0)
    draft = await task.step("draft", lambda: request["text"].strip().capitalize())
    answer = await task.wait("approval", reason="waiting_for_approval", within_ms=24 * 3600 * 1000)
    return {"published": draft if answer.value == "yes" else None}


@worker.handler("chat")
async def chat(task, name):
    """Answers messages to the mailbox "user" until one says bye, or none comes for an hour."""
    said = 0
    while (m := await task.receive("user", within_ms=3600 * 1000, on_timeout="auto_resume")) and m.value != "bye":
        said += 1
        await task.step(f"answer {said}", task.frame, f"{name}, you said {m.value}. ")
    return {"answers": said}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run_blocking()
