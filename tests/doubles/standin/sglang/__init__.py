"""A stand-in for SGLang's package: the same command line, processes that resist a stop, the double behind it."""
