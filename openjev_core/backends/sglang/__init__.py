"""SGLang over HTTP: warm a prefix once, fan its branches out, survive what the server does."""
