"""A judge for the runs in cases.txt: judge.py FILE writes its address to FILE and answers until it is killed. Its
verdicts depend only on what it is asked. Asked for the model "absent" about some questions, it answers as another
model, which fails the stage."""

import http.server
import json
import os
import sys
import zlib


class Judge(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][-1]["content"]
        question = text.partition("[question ")[2].partition("]\n")[2].partition("\n[end of question ")[0]
        model = asked["model"]
        if model == "absent" and zlib.crc32(question.encode()) % 5 == 0:
            model = "another"
        verdict = ("Match", "Mismatch")[zlib.crc32(text.encode()) % 2]
        reply = json.dumps({"id": "c", "object": "chat.completion", "model": model, "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": verdict}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(f"http://127.0.0.1:{server.server_address[1]}/v1")
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
