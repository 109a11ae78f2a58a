# Whetstone for machines without Linux (macOS, Windows): the embedded sandbox needs it. docs/install.md says how to run it.
#
#   docker build -t whetstone .
#   docker run --rm -it -v whetstone-runs:/root/code-rl-logs whetstone train
FROM node:22-bookworm-slim

# What `./whet` would install on first use, and the Python that runs programs.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends bubblewrap ca-certificates python3 python3-venv \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /whetstone
COPY . .
# The packages of the lockfile, the engine's runtime among them; nothing is fetched when the container starts.
RUN ./whet --version

# Problems and config files of the folder that is mounted here are found by their own names.
WORKDIR /work
ENTRYPOINT ["/whetstone/whet"]
CMD ["help"]
