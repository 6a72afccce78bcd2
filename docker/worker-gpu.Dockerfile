# The judge for NVIDIA GPUs: the CUDA build of PyTorch brings its own CUDA libraries; the driver comes from the host.
FROM python:3.12-slim-bookworm
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONPATH=/app \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN apt-get update && apt-get install -y --no-install-recommends g++ bubblewrap && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY pyproject.toml constraints.txt README.md ./
COPY warpwright/__init__.py warpwright/
RUN pip install -c constraints.txt -e '.[judge,stack]'
COPY . .
RUN useradd --uid 10001 --create-home warpwright && mkdir -p /data /run/warpwright && chown warpwright /data /run/warpwright
USER warpwright
VOLUME /data
CMD ["python", "-m", "workers", "gpu"]
