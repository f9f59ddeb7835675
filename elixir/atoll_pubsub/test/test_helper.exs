# SPDX-License-Identifier: Apache-2.0
ExUnit.start(seed: String.to_integer(System.get_env("ATOLL_TEST_SEED", "0")))
