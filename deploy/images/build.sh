#!/usr/bin/env bash
# Build the image with docker, podman or buildah, whichever is there; print its size, and write what is in it.
#   deploy/images/build.sh [TAG]         BASE=debian:bookworm-slim
# Beside the image: marin.sbom.json (CycloneDX, of the packages of uv.lock) and marin.packages.txt (Debian's).
set -euo pipefail
cd "$(dirname "$0")/../.."
tag=${1:-marin}
base=${BASE:-debian:bookworm-slim}
out=${OUT:-dist}
mkdir -p "$out"

builder=$(command -v docker || command -v podman || command -v buildah) ||
    { echo "None of docker, podman and buildah is installed. Install one: apt install buildah" >&2; exit 1; }
case $(basename "$builder") in
    buildah)
        # A network with certificates of its own: they are of the build, not of the image.
        certs=(--volume /etc/ssl/certs:/etc/ssl/certs:ro)
        buildah bud --network host "${certs[@]}" --build-arg BASE="$base" -t "$tag" -f deploy/images/Dockerfile .
        size=$(buildah inspect --type image --format '{{.Docker.Size}}' "$tag" 2>/dev/null || echo 0)
        enter() { container=$(buildah from "$tag"); buildah run "$container" -- "$@"; buildah rm "$container" >/dev/null; }
        ;;
    *)
        "$builder" build --build-arg BASE="$base" -t "$tag" -f deploy/images/Dockerfile .
        size=$("$builder" image inspect --format '{{.Size}}' "$tag")
        enter() { "$builder" run --rm "$tag" "$@"; }
        ;;
esac
enter dpkg-query --show --showformat '${Package} ${Version}\n' > "$out/marin.packages.txt"
.tools/bin/uv export --quiet --locked --no-default-groups --extra deploy --format cyclonedx1.5 > "$out/marin.sbom.json"
echo "image     $tag"
echo "size      $((size / 1000000)) MB"
echo "Debian    $(wc -l < "$out/marin.packages.txt") packages: $out/marin.packages.txt"
echo "Python    $(grep -c '"purl"' "$out/marin.sbom.json") packages: $out/marin.sbom.json"
