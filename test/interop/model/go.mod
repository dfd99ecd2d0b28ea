module github.com/mesh-agent/mesh-agent/test/interop/model

go 1.22.0
