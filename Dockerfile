# For docker, podman and buildah: make build first. make image needs none of them, and
# makes the same for several platforms, with an SBOM.
FROM scratch
COPY bin/operator-controller /operator-controller
USER 65532:65532
ENTRYPOINT ["/operator-controller"]
