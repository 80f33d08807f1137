# Images of GuideSpace for compose.yaml (docs/operations.md has a section on containers). Three targets:
#
#   docker build --target cpu --build-arg TORCH_INDEX_URL=… -t guidespace:cpu .    torch's CPU build
#   docker build --target gpu -t guidespace:gpu .                                  torch with CUDA 13, CuPy
#   docker build --target light -t guidespace:light .                              commands that only read
#
# Versions are those of requirements.lock. tests/deployments/test_image.py runs the pip lines of the target cpu in
# a virtual environment.
FROM python:3.11-slim-bookworm AS base
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    DO_NOT_TRACK=1 \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    MLFLOW_DISABLE_TELEMETRY=true \
    MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false \
    GIT_PYTHON_REFRESH=quiet
# /data holds the home, /users MLflow's users: volumes take the owner of the folder they are mounted on.
RUN useradd --create-home --uid 1000 guidespace \
    && install -d -o guidespace /data /users
WORKDIR /opt/guidespace

FROM base AS cpu
# An index of wheels with torch's CPU build, as torch's installation page names it; no default.
ARG TORCH_INDEX_URL
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --extra-index-url "${TORCH_INDEX_URL:?an index with the CPU build of torch}" \
    --constraint requirements.lock torch \
    && python -c "import torch; assert torch.version.cuda is None, 'TORCH_INDEX_URL gave torch with CUDA, not its CPU build'"
COPY . .
RUN python -m pip install --no-cache-dir --constraint requirements.lock --editable ".[night,server]"
USER 1000

FROM base AS gpu
COPY . .
RUN python -m pip install --no-cache-dir --constraint requirements.lock --editable ".[night,server,gpu-cuda13]" \
    && python -c "import torch; assert torch.version.cuda, 'pip gave a torch without CUDA'"
USER 1000

FROM base AS light
COPY . .
RUN python -m pip install --no-cache-dir --constraint requirements.lock --editable .
USER 1000
