#!/usr/bin/env python3
"""The Python part: a worker of the kind "research". See README.md."""

import asyncio
import logging
import os

from flowfabric import Worker

TOPIC = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
}
REPORT = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "published_by": {"type": "string"}},
    "required": ["answer", "published_by"],
}

worker = Worker(
    os.environ.get("FLOWFABRIC_API", "http://127.0.0.1:8080"),
    lease=float(os.environ.get("LEASE_SECONDS", "5")),  # a worker that was killed keeps its work for so long
)


def plan(question):
    """An agent would ask a model here."""
    print(f"planning: {question}", flush=True)
    return ["What is known?", "What is disputed?", "What comes next?"]


async def write(task, part, question):
    """Streams a paragraph word by word, and returns it."""
    text = f"{part} A model would write a paragraph about “{question}” here, but this is one sentence.\n"
    for word in text.split(" "):
        await task.frame(word if word.endswith("\n") else word + " ")
        await asyncio.sleep(0.1)
    return text


@worker.handler("research", input=TOPIC, result=REPORT)
async def research(task, topic):
    """Runs again from the top after a crash and after the question, but a recorded step returns what it did."""
    question = topic["question"]
    parts = await task.step("plan", plan, question)
    answer = "".join([await task.step(part, write, task, part, question) for part in parts])
    said = await task.ask("publish", "Publish?", text=answer, choices=["yes", "no"])
    if said.name != "yes":
        return {"answer": answer, "published_by": ""}
    await task.children("publishing", [{"name": "publish", "kind": "publish", "input": answer}])  # main.go does it
    return {"answer": answer, "published_by": said.value.get("by", "somebody")}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run_blocking()
