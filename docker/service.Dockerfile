# API and control worker: no PyTorch is ever imported by them.
FROM python:3.11-slim-bookworm
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONPATH=/app
WORKDIR /app
COPY pyproject.toml constraints.txt README.md ./
COPY warpwright/__init__.py warpwright/
RUN pip install -c constraints.txt -e '.[stack]'
COPY . .
RUN useradd --uid 10001 --create-home warpwright && mkdir /data && chown warpwright /data
USER warpwright
VOLUME /data
EXPOSE 8000
CMD ["python", "-m", "service"]
