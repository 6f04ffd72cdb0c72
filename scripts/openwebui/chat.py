"""Asks two questions in a chat of Open WebUI and checks its stored answers.

usage: chat.py OPEN_WEBUI ASSAY, both URLs

The requests are those of Open WebUI's own page: sign up, verify the connection, list the models, and
complete a chat, whose answer the server stores with its sources.
"""

import json
import sys
import time
import urllib.error
import urllib.request

webui, assay = sys.argv[1], sys.argv[2]
token = None


def call(method, path, body=None):
    """Returns the JSON of a response."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(webui + path, method=method, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as e:
        sys.exit(f"open-webui: {method} {path}: {e.code} {e.read()[:500]!r}")


def ask(question, previous=None, chat=None, history=()):
    """Asks a question and returns the chat and the stored answer."""
    number = len(history)
    user = {"id": f"user-{number}", "parentId": previous, "role": "user", "content": question, "timestamp": 1, "models": ["assay"]}
    body = {
        "model": "assay",
        "stream": True,
        "session_id": "session",
        "parent_id": previous,
        "id": f"assistant-{number}",
        "user_message": user,
        "messages": [*history, {"role": "user", "content": question}],
    }
    if chat:
        body["chat_id"] = chat
    chat = call("POST", "/api/chat/completions", body)["chat_id"]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = call("GET", "/api/v1/chats/" + chat)["chat"]["history"]["messages"].get(body["id"], {})
        if answer.get("done"):
            return chat, answer
        time.sleep(0.1)
    sys.exit(f"open-webui: no answer to {question!r}")


def check(question, answer, want):
    """Checks that an answer is the one wanted, with a source and the progress of its run."""
    kinds = [part["type"] for part in answer.get("output", [])]
    sources = [s["source"]["name"] for s in answer.get("sources", [])]
    print(f"{question}\n  {answer['content']}\n  sources: {', '.join(sources) or 'none'}; parts: {', '.join(kinds)}")
    if answer.get("error") or want not in answer["content"] or "[1]" not in answer["content"] or not sources:
        sys.exit(f"open-webui: want {want!r} with a source, got {json.dumps(answer)}")


token = call("POST", "/api/v1/auths/signup", {"name": "Ann", "email": "ann@example.com", "password": "a long password 1"})["token"]
listed = call("POST", "/openai/verify", {"url": assay + "/v1", "key": ""})["data"]
models = [m["id"] for m in call("GET", "/api/models")["data"]]
if "assay" not in models or not listed:
    sys.exit(f"open-webui: the models are {models}, {listed}")
print("models:", ", ".join(models))

first = "How many days of leave may I carry over?"
chat, answer = ask(first)
check(first, answer, "five days")
follow = "When do they expire?"
history = [{"role": "user", "content": first}, {"role": "assistant", "content": answer["content"]}]
_, answer = ask(follow, answer["id"], chat, history)
check(follow, answer, "31 March")
