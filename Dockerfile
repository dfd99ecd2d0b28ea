# The image of mesh-agent: one static program, the authorities of the public web, and two papers: the licenses of what
# the program is made of, and the bill of materials of the very file.
#
#   docker build --build-arg VERSION=$(git describe --tags --always --dirty) -t REGISTRY/mesh-agent:VERSION .
#
# The compiler runs on the builder's own platform and makes the program for the wanted one, so that
# `docker buildx build --platform linux/amd64,linux/arm64` emulates nothing.
#
# The base is named by its digest: a tag can be moved. `make image-base` asks the registry for that of the tag.
FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:3c3e25a4da13fd0478eed2df1eb35a0e667094a7124d3993a6a1d30f71c17e79 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd/mesh-agent cmd/mesh-agent
COPY internal internal
COPY pkg pkg
COPY tools/sbom tools/sbom
# The page in the program has packages of npm.
COPY ui/package-lock.json ui/
# BuildKit sets the platform; nobody else sets the version, which cannot be read from git here.
ARG TARGETOS TARGETARCH
ARG VERSION=unknown
# As `make build`. The mounts only keep what was downloaded and compiled for the next build.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -tags grpcnotrace -gcflags 'k8s.io/...=-l' -ldflags "-s -w -X main.release=$VERSION" -o bin/ ./cmd/mesh-agent && \
    go run ./tools/sbom -version "$VERSION" -npm ui/package-lock.json bin/mesh-agent > bin/mesh-agent.cdx.json

FROM scratch
# For client files that name no authority (trusted-ca-file): then those of the system are trusted.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/bin/mesh-agent /usr/bin/
COPY --from=build /src/bin/mesh-agent.cdx.json /src/internal/base/notices/notices.txt /usr/share/mesh-agent/
# So that `kubectl exec POD -- mesh-agent status` finds it.
ENV PATH=/usr/bin
# Nobody in particular: without root there is less to lose. A number, so that runAsNonRoot can be checked.
USER 65532:65532
ENTRYPOINT ["/usr/bin/mesh-agent"]
CMD ["run"]
