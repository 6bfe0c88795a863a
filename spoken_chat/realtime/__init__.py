"""The WebSocket `/v1/realtime`: events of the OpenAI Realtime API in and out. docs/realtime.md describes the wire."""
