# The released image: goreleaser puts its binaries beside this file, by platform.
FROM alpine:3.22 AS certificates
RUN apk add --no-cache ca-certificates

FROM scratch
ARG TARGETPLATFORM
COPY --from=certificates /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY $TARGETPLATFORM/flowfabric $TARGETPLATFORM/flowfabric-mcp /
USER 65532:65532
EXPOSE 7788
ENTRYPOINT ["/flowfabric"]
CMD ["serve", "--addr", "0.0.0.0:7788"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/flowfabric", "health", "--timeout", "4s"]
