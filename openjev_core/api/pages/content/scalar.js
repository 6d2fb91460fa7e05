// Scalar, kept to this server: no fonts, agents, proxies or telemetry from elsewhere.
globalThis.Scalar.createApiReference("#reference", {
  url: new URL("openapi.json", document.baseURI).href,
  // The document's own is relative, and Scalar resolves that against nothing.
  servers: [{ url: new URL(".", document.baseURI).href.replace(/\/$/, "") }],
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true, hideAddApi: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  persistAuth: false,
  authentication: { preferredSecurityScheme: "key" },
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
});
