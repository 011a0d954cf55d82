#!/usr/bin/env bash
# Generates sandbox.pb.go and sandbox_grpc.pb.go from sandbox.proto. Needs a Python with grpcio-tools
# (PYTHON names it) and, on PATH, protoc-gen-go v1.36.12 and protoc-gen-go-grpc v1.6.2:
#   go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
#   go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
set -euo pipefail
cd "$(dirname "$0")"
"${PYTHON:-python3}" -m grpc_tools.protoc -I. --go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative sandbox.proto
