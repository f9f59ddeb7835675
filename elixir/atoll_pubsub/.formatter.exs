# SPDX-License-Identifier: Apache-2.0
[inputs: ["*.exs", "lib/**/*.ex", "test/**/*.{ex,exs}"], line_length: 120]
