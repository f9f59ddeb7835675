# SPDX-License-Identifier: Apache-2.0
defmodule Atoll.PubSub.ClaimsTest do
  use ExUnit.Case, async: true

  alias Atoll.PubSub.{Claims, Follows}

  # Three nodes in any order of events: each follows and unfollows, its claims come late, twice or not at all, and a
  # comparison brings what was lost. Whoever was told that its topic is followed is in the claim that all have.
  test "no message misses a node where the topic's follower was answered" do
    for _ <- 1..60 do
      nodes = [:a, :b, :c]
      world = for node <- nodes, into: %{}, do: {node, start(node)}
      Enum.reduce(1..40, world, fn _, world -> step(world, Enum.random(nodes)) |> tap(&check/1) end) |> stop()
    end
  end

  defp start(node) do
    table = Claims.init(:"claims_#{node}_#{System.unique_integer([:positive])}")
    %{table: table, follows: %Follows{}, answered: MapSet.new(), n: 0, pids: Enum.map(1..3, fn i -> {node, i} end)}
  end

  defp step(world, node) do
    %{follows: follows, answered: answered} = self = world[node]
    pid = Enum.random(self.pids)
    topic = "t#{:rand.uniform(12)}"

    case :rand.uniform(6) do
      # A round: the claim comes to all before anybody is answered. Some get it twice.
      1 ->
        {_, follows} = Follows.follow(follows, pid, topic)
        slots = Follows.widen(follows)
        {self, claim} = claim(%{self | follows: follows}, slots)
        world = %{world | node => self}
        for other <- Map.keys(world), _ <- 0..:rand.uniform(2), do: merge(world, other, node, claim)
        %{world | node => %{self | follows: Follows.known(follows, slots), answered: all(follows)}}

      # A follower of what is known is answered at once.
      2 ->
        case Follows.follow(follows, pid, topic) do
          {true, follows} -> %{world | node => %{self | follows: follows, answered: MapSet.put(answered, {pid, topic})}}
          {false, _} -> world
        end

      3 ->
        follows = Follows.unfollow(follows, pid, topic)
        %{world | node => %{self | follows: follows, answered: MapSet.delete(answered, {pid, topic})}}

      4 ->
        follows = Follows.gone(follows, pid)
        refute Follows.follows?(follows, pid)
        %{world | node => %{self | follows: follows, answered: MapSet.reject(answered, fn {p, _} -> p == pid end)}}

      # Nobody waits for this one, and some miss it.
      5 ->
        case Follows.narrow(follows) do
          {:same, _} ->
            world

          {slots, follows} ->
            {self, claim} = claim(%{self | follows: follows}, slots)
            world = %{world | node => self}
            for other <- [node | Enum.take_random(Map.keys(world), 1)], do: merge(world, other, node, claim)
            world
        end

      6 ->
        other = Enum.random(Map.keys(world))
        said = Claims.since(Claims.digest(self.table), world[other].table)
        for {of, claim} <- said, do: merge(world, node, of, claim)
        assert Claims.since(Claims.digest(self.table), world[other].table) == []
        has = Claims.digest(self.table)
        for {of, stamp} <- Claims.digest(world[other].table), do: assert(has[of] >= stamp)
        world
    end
  end

  defp all(follows), do: for({pid, topics} <- follows.topics, topic <- topics, into: MapSet.new(), do: {pid, topic})

  defp claim(self, slots) do
    n = self.n + 1
    {%{self | n: n}, Claims.claim({1, n}, ["t"], MapSet.to_list(slots))}
  end

  defp merge(world, at, of, claim), do: Claims.merge(of, claim, world[at].table)

  defp check(world) do
    for {node, %{answered: answered}} <- world, {_, topic} <- answered, {_, %{table: table}} <- world do
      assert node in Claims.wanting(table, topic)
    end
  end

  defp stop(world), do: for({_, %{table: table}} <- world, do: :ets.delete(table))

  test "a later claim stays whatever comes after it, and a later release's is left" do
    table = Claims.init(:claims_order)
    old = Claims.claim({7, 1}, ["t"], [Claims.slot("t1")])
    new = Claims.claim({7, 2}, ["t"], [])
    assert {:new, _} = Claims.merge(:x, new, table)
    assert {:stale, _} = Claims.merge(:x, old, table)
    assert {:stale, _} = Claims.merge(:x, new, table)
    assert {:stale, _} = Claims.merge(:x, {{8, 1}, ["t"], "no map"}, table)
    assert {:stale, _} = Claims.merge(:x, :something_else, table)
    assert Claims.wanting(table, "t1") == []
    assert {:new, _} = Claims.merge(:x, Claims.claim({8, 1}, ["t"], [0, 65_535]), table)
    assert Claims.sizes(%{claims: table}) == %{x: 2}
    Claims.forget(table, :x)
    assert Claims.nodes(table) == []
  end

  test "a node is sent what it does not track" do
    table = Claims.init(:claims_tracked)
    Claims.merge(:tracks, Claims.claim({1, 1}, ["room:"], []), table)
    Claims.merge(:tracks_other, Claims.claim({1, 1}, ["user:"], []), table)
    Claims.merge(:tracks_none, Claims.claim({1, 1}, [], []), table)
    assert Enum.sort(Claims.wanting(table, "room:1")) == [:tracks_none, :tracks_other]
  end

  test "a claim of some topics is small, and one of many no larger than the map" do
    slots = for n <- 1..100, do: Claims.slot("room:#{n}")
    assert byte_size(Claims.pack(Enum.uniq(slots))) < 600
    assert byte_size(Claims.pack(Enum.to_list(0..65_535))) < 8_300
    assert byte_size(Claims.pack(Enum.filter(0..65_535, fn _ -> :rand.uniform(2) == 1 end))) < 8_300
  end
end
