// Protocol Buffers' own C++ encoder, behind the interface of CPeers. Scripts/bench.sh builds it as a library where the
// compiler and the headers are installed. The message is made before the clock starts; what is decoded stays a message.

#include "CPeers.h"
#include "worlds.pb.h"

#include <cstdlib>

using keepsake::bench::Dungeon;

struct CDungeon {
  Dungeon message;
};

namespace {

CDungeon *make(int64_t level, const char *name, size_t name_bytes, size_t heroes) {
  auto *dungeon = new CDungeon;
  dungeon->message.set_level(level);
  dungeon->message.set_name(std::string(name, name_bytes));
  dungeon->message.mutable_heroes()->Reserve(static_cast<int>(heroes));
  return dungeon;
}

void add_hero(CDungeon *dungeon, int64_t type, const char *name, size_t name_bytes, float x, float y, int64_t health,
              int64_t target) {
  auto *hero = dungeon->message.add_heroes();
  hero->set_type(type);
  hero->set_name(std::string(name, name_bytes));
  hero->set_x(x);
  hero->set_y(y);
  hero->set_health(health);
  if (target >= 0) hero->set_target(static_cast<int32_t>(target));
}

void add_item(CDungeon *dungeon, int32_t kind, int64_t count, double durability) {
  auto *item = dungeon->message.mutable_heroes(dungeon->message.heroes_size() - 1)->add_inventory();
  item->set_kind(kind);
  item->set_count(count);
  item->set_durability(durability);
}

uint8_t *encode(CDungeon *dungeon, const uint8_t *, size_t, size_t *count) {
  const size_t size = dungeon->message.ByteSizeLong();
  auto *bytes = static_cast<uint8_t *>(malloc(size));
  if (!bytes) return nullptr;
  dungeon->message.SerializeWithCachedSizesToArray(bytes);
  *count = size;
  return bytes;
}

CDungeon *decode(const uint8_t *bytes, size_t count, const uint8_t *, size_t) {
  auto *dungeon = new CDungeon;
  if (dungeon->message.ParseFromArray(bytes, static_cast<int>(count))) return dungeon;
  delete dungeon;
  return nullptr;
}

/// Equal messages give equal bytes: there is no map in a dungeon.
bool equal(const CDungeon *one, const CDungeon *other) {
  return one->message.SerializeAsString() == other->message.SerializeAsString();
}

void release(CDungeon *dungeon) { delete dungeon; }

} // namespace

extern "C" const DungeonPeer *library_peer(void) {
  static const DungeonPeer peer = {make, add_hero, add_item, encode, decode, equal, release};
  return &peer;
}
