// SPDX-License-Identifier: Apache-2.0
// Writes the types of the answers from the contract, so that the page cannot be built
// for another one.
//
// usage: node contract.mjs OPENAPI.json > src/contract.ts
import { readFileSync } from 'node:fs';

const { components: { schemas } } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

const plain = schema => {
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.enum) return schema.enum.map(each => JSON.stringify(each)).join(' | ');
  switch (schema.type) {
    case 'string': return 'string';
    case 'integer': case 'number': return 'number';
    case 'boolean': return 'boolean';
    case 'array': return array(schema);
    case 'object': return schema.properties ? object(schema) : `Readonly<Record<string, ${type(schema.additionalProperties)}>>`;
    default: throw new Error(`a type that is not known: ${JSON.stringify(schema)}`);
  }
};
const type = schema => schema.nullable ? `${plain(schema)} | null` : plain(schema);
const array = ({ items, minItems, maxItems }) => minItems !== undefined && minItems === maxItems
  ? `readonly [${Array(minItems).fill(type(items)).join(', ')}]` : `ReadonlyArray<${type(items)}>`;
const object = ({ properties, required = [] }) => `{ ${Object.entries(properties)
  .map(([name, schema]) => `readonly ${name}${required.includes(name) ? '' : '?'}: ${type(schema)}`).join('; ')} }`;

console.log('// SPDX-License-Identifier: Apache-2.0\n// Written by contract.mjs.');
for (const [name, schema] of Object.entries(schemas)) console.log(`export type ${name} = ${type(schema)};`);
