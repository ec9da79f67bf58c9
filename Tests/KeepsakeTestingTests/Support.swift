import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import Testing

let gardenID = FlowerGarden.id

extension TestDevice {
  /// The garden on this device, opened.
  func garden() throws -> FlowerGarden { FlowerGarden(try open(gardenID)) }
}

extension FlowerGarden {
  func pot(_ name: String) throws -> Pot { try #require(try game.saves.load(.pot(name))) }
}

/// A phone and a tablet of one player that have both synced with their cloud, with a pot on each.
struct Pair {
  let world = TestWorld()
  let phone: TestDevice
  let tablet: TestDevice
  let here: FlowerGarden
  let there: FlowerGarden

  init(_ pot: Pot = Pot()) async throws {
    phone = try world.device("phone")
    tablet = try world.device("tablet")
    here = try phone.garden()
    there = try tablet.garden()
    try await here.game.saves.save(pot, to: .pot("sill"))
    try await world.settle()
  }

  func cut() { (phone.network, tablet.network) = (.cut, .cut) }

  func heal() async throws {
    (phone.network, tablet.network) = (.good, .good)
    try await world.settle()
  }
}

/// The debts of a world that doesn't settle; none if it settles.
func debts(of world: TestWorld) async throws -> [UnsettledError.Debt] {
  do {
    try await world.settle()
    return []
  } catch let error as UnsettledError {
    return error.debts
  }
}
