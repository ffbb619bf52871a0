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

works() { case $1 in docker) docker info >/dev/null 2>&1 ;; *) command -v "$1" >/dev/null ;; esac; }
builder=${BUILDER:-}
for candidate in docker podman buildah; do
    [ -n "$builder" ] || ! works "$candidate" || builder=$candidate
done
[ -n "$builder" ] || { echo "No docker daemon answers, and neither podman nor buildah is installed: apt install buildah" >&2; exit 1; }
case $builder in
    buildah)
        # A network with certificates of its own: they are of the build, not of the image.
        certs=(--volume /etc/ssl/certs:/etc/ssl/certs:ro)
        buildah bud --network host "${certs[@]}" --build-arg BASE="$base" -t "$tag" -f deploy/images/Dockerfile .
        size=$(buildah images --json "$tag" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["size"])')
        enter() { container=$(buildah from "$tag"); buildah run "$container" -- "$@"; buildah rm "$container" >/dev/null; }
        ;;
    *)
        "$builder" build --build-arg BASE="$base" -t "$tag" -f deploy/images/Dockerfile .
        size=$("$builder" images --format '{{.Size}}' "$tag" | head -1)
        enter() { "$builder" run --rm "$tag" "$@"; }
        ;;
esac
enter dpkg-query --show --showformat '${Package} ${Version}\n' > "$out/marin.packages.txt"
.tools/bin/uv export --quiet --locked --no-default-groups --extra deploy --format cyclonedx1.5 > "$out/marin.sbom.json"
echo "image     $tag"
echo "size      $size"
echo "Debian    $(wc -l < "$out/marin.packages.txt") packages: $out/marin.packages.txt"
echo "Python    $(grep -c '"purl"' "$out/marin.sbom.json") packages: $out/marin.sbom.json"
