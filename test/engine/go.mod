// An engine of a kvstore outside of the module of the project: it uses exported names alone.
module example.org/engine

go 1.26.0

require github.com/mesh-agent/mesh-agent v0.0.0

replace github.com/mesh-agent/mesh-agent => ../..
