"""Services that answer questions by themselves: any server of ``/v1/systemone``, or of OpenAI's ``/v1/decisions``."""
