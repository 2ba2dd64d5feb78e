// Checks a document against OpenRPC's own schema: openrpc_check.mjs FOLDER FILE
// FOLDER has the packages in its node_modules. Prints the errors as one JSON line; test_docs.py judges them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, file] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const Ajv = require("ajv").default;
const { openrpcDocument } = require("@open-rpc/meta-schema");
const { jsonSchema } = require("@json-schema-tools/meta-schema");

// Both name themselves as their own dialect of JSON Schema, which is draft 7.
const draft7 = ({ $schema, ...schema }) => schema;
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
const { $id, ...anywhere } = draft7(jsonSchema);
ajv.addSchema(anywhere, "https://meta.json-schema.tools").addSchema(anywhere, "https://meta.json-schema.tools/");
const validate = ajv.compile(draft7(openrpcDocument));
validate(JSON.parse(readFileSync(file, "utf8")));
console.log(JSON.stringify(validate.errors ?? []));
