// The question types of a server, and what a form has to know of their schemas.
//
// A node describes one place of a question: { kind, nullable, ... } with `description` and `standard` (the value that
// the server takes when there is none) where the schema tells them. A kind is one of content, json, text, number,
// boolean, enum (with options), object (with fields), map (with the node of its values) and list (of its items).

/** The installed question types, from the server's own description. */
export function typesOf(document) {
  const schemas = document.components.schemas;
  const types = new Map();
  for (const [name, reference] of Object.entries(schemas.Question.discriminator?.mapping ?? {})) {
    const schema = schemas[reference.split("/").at(-1)];
    types.set(name, {
      name,
      summary: (schema.description ?? "").split("\n")[0],
      help: helpOf(schemas, name),
      node: nodeOf({ $ref: reference }, schemas),
    });
  }
  return types;
}

/** What the fields of a type's answers mean, by name. */
function helpOf(schemas, type) {
  const reference = schemas.Answer?.discriminator?.mapping?.[type];
  const { properties = {} } = schemas[reference?.split("/").at(-1)] ?? {};
  const described = Object.entries(properties).filter(([, { description }]) => description !== undefined);
  return new Map(described.map(([name, { description }]) => [name, description]));
}

const MAX_DEPTH = 8;

/** The node of a schema. What has no form of its own is edited as JSON. */
export function nodeOf(schema, components, depth = 0) {
  if (depth > MAX_DEPTH || schema === null || typeof schema !== "object") return { kind: "json", nullable: true };
  if (schema.$ref) {
    const target = components[decodeURIComponent(schema.$ref.split("/").at(-1))];
    return { ...nodeOf(target, components, depth + 1), ...described(schema) };
  }
  const found = alternatives(schema);
  const nullable = found.some(isNull);
  const others = found.filter((one) => !isNull(one));
  if (others.length === 1) {
    const inner =
      others[0] === schema ? plainNode(schema, components, depth) : nodeOf(others[0], components, depth + 1);
    return { ...inner, nullable: nullable || inner.nullable, ...described(schema) };
  }
  const isContent = others.some((one) => one.type === "string") && others.every((one) => isFree(one));
  return { kind: isContent ? "content" : "json", nullable: nullable || others.length === 0, ...described(schema) };
}

function alternatives(schema) {
  if (Array.isArray(schema.anyOf)) return schema.anyOf;
  if (Array.isArray(schema.oneOf)) return schema.oneOf;
  if (Array.isArray(schema.type)) return schema.type.map((type) => ({ ...schema, type }));
  return [schema];
}

function isNull(schema) {
  return schema.type === "null" || schema.const === null;
}

function isFree(schema) {
  if (schema.type === "string") return schema.enum === undefined;
  if (schema.type === "object") return schema.properties === undefined;
  return schema.type === "array" && (schema.items === undefined || Object.keys(schema.items).length === 0);
}

function described({ description, default: standard }) {
  return { ...(description === undefined ? {} : { description }), ...(standard === undefined ? {} : { standard }) };
}

function plainNode(schema, components, depth) {
  const nullable = false;
  if (schema.const !== undefined) return { kind: "enum", nullable, options: [schema.const] };
  if (Array.isArray(schema.enum)) {
    return { kind: "enum", nullable: schema.enum.includes(null), options: schema.enum.filter((one) => one !== null) };
  }
  if (schema.type === "string") return { kind: "text", nullable };
  if (schema.type === "boolean") return { kind: "boolean", nullable };
  if (schema.type === "number" || schema.type === "integer") return { kind: "number", nullable };
  if (schema.type === "array" && schema.items && Object.keys(schema.items).length > 0) {
    return { kind: "list", nullable, item: nodeOf(schema.items, components, depth + 1) };
  }
  if (schema.type === "object" && schema.properties) {
    const required = new Set(schema.required ?? []);
    const fields = Object.entries(schema.properties)
      .filter(([name]) => name !== "type")
      .map(([name, property]) => ({
        name,
        required: required.has(name),
        node: nodeOf(property, components, depth + 1),
      }));
    return { kind: "object", nullable, fields };
  }
  if (schema.type === "object" && schema.additionalProperties && typeof schema.additionalProperties === "object") {
    return { kind: "map", nullable, value: nodeOf(schema.additionalProperties, components, depth + 1) };
  }
  return { kind: "json", nullable: Object.keys(schema).length === 0 };
}
