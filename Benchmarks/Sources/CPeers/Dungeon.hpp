#ifndef DUNGEON_HPP
#define DUNGEON_HPP

#include "CPeers.h"

#include <memory>
#include <string>
#include <vector>

struct Item {
  int32_t kind;
  int64_t count;
  double durability;
};

struct Hero {
  int64_t type;
  std::string name;
  float x, y;
  int64_t health;
  std::vector<Item> inventory;
  Hero *target = nullptr;
  /// The place in the list, which spares the encoder a table from address to number.
  uint32_t number = 0;
};

struct CDungeon {
  int64_t level = 0;
  std::string name;
  std::vector<std::unique_ptr<Hero>> heroes;
};

/// What every peer does alike with the objects themselves.
inline CDungeon *make_dungeon(int64_t level, const char *name, size_t name_bytes, size_t heroes) {
  auto *dungeon = new CDungeon;
  dungeon->level = level;
  dungeon->name.assign(name, name_bytes);
  dungeon->heroes.reserve(heroes);
  return dungeon;
}

inline void add_hero(CDungeon *dungeon, int64_t type, const char *name, size_t name_bytes, float x, float y,
                     int64_t health, int64_t target) {
  auto hero = std::make_unique<Hero>();
  hero->type = type;
  hero->name.assign(name, name_bytes);
  hero->x = x;
  hero->y = y;
  hero->health = health;
  if (target >= 0) hero->target = dungeon->heroes[static_cast<size_t>(target)].get();
  hero->number = static_cast<uint32_t>(dungeon->heroes.size());
  dungeon->heroes.push_back(std::move(hero));
}

inline void add_item(CDungeon *dungeon, int32_t kind, int64_t count, double durability) {
  dungeon->heroes.back()->inventory.push_back({kind, count, durability});
}

inline bool equal_dungeons(const CDungeon *one, const CDungeon *other) {
  if (one->level != other->level || one->name != other->name || one->heroes.size() != other->heroes.size())
    return false;
  for (size_t index = 0; index < one->heroes.size(); index++) {
    const Hero &a = *one->heroes[index], &b = *other->heroes[index];
    if (a.type != b.type || a.name != b.name || a.x != b.x || a.y != b.y || a.health != b.health ||
        a.inventory.size() != b.inventory.size() || !a.target != !b.target ||
        (a.target && a.target->number != b.target->number))
      return false;
    for (size_t slot = 0; slot < a.inventory.size(); slot++) {
      const Item &x = a.inventory[slot], &y = b.inventory[slot];
      if (x.kind != y.kind || x.count != y.count || x.durability != y.durability) return false;
    }
  }
  return true;
}

inline void release_dungeon(CDungeon *dungeon) { delete dungeon; }

#endif
