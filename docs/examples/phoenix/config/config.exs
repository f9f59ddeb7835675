import Config

config :atoll,
  overlay: :cliques,
  s_groups: [
    north: for(n <- 1..3, do: :"reef#{n}@127.0.0.1"),
    south: for(n <- 3..6, do: :"reef#{n}@127.0.0.1")
  ]
