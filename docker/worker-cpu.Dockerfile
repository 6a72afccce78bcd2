# The judge for the CPU, builds and Proposers (the synthesiser traces references): PyTorch, a C++ compiler, bubblewrap.
FROM python:3.11-slim-bookworm
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONPATH=/app
RUN apt-get update && apt-get install -y --no-install-recommends g++ bubblewrap && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY pyproject.toml constraints.txt README.md ./
COPY warpwright/__init__.py warpwright/
RUN pip install -c constraints.txt -e '.[judge,stack]'
COPY . .
RUN useradd --uid 10001 --create-home warpwright && mkdir -p /data /run/warpwright && chown warpwright /data /run/warpwright
USER warpwright
VOLUME /data
CMD ["python", "-m", "workers", "cpu"]
