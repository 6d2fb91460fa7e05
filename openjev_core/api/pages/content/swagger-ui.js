// Swagger UI, kept to this server: the key that it asks for is not stored, and no validator elsewhere is called.

// Its dark theme hangs on a class.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

globalThis.SwaggerUIBundle({
  url: new URL("openapi.json", document.baseURI).href,
  dom_id: "#swagger",
  validatorUrl: null,
  persistAuthorization: false,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  onComplete: named,
});

/** Name for screen readers what Swagger UI leaves without a name. */
function named() {
  document.getElementById("servers")?.setAttribute("aria-label", "Server");
  const regions = { ".information-container": "About this API", ".schemes-server-container": "Server and key" };
  for (const [selector, name] of Object.entries(regions)) {
    const region = document.querySelector(selector);
    region?.setAttribute("role", "region");
    region?.setAttribute("aria-label", name);
  }
}
